package chaos

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// onSmallDisk names the folder at which a process of the test shall put a file
// system that is soon full.
const onSmallDisk = "ELECTOR_SMALL_DISK"

// TestFullDisk fills the disk of the file backend under a leader. It runs in a
// process of its own that has its own mounts, so that it leaves none behind. It
// takes root, or a system that lets everybody have a user namespace.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(onSmallDisk); dir != "" {
		err := errors.Join(
			syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""),
			syscall.Mount("none", dir, "tmpfs", 0, "size=64k,mode=0700"))
		if err != nil {
			t.Fatal("mounting a small disk: ", err)
		}
		fullDisk(t, dir)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullDisk$", "-test.v", "-test.timeout=2m")
	cmd.Env = append(os.Environ(), onSmallDisk+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestFullDisk") {
		t.Fatalf("%v\n%s", err, out)
	}
}

func fullDisk(t *testing.T, dir string) {
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the watchdog"))
	defer cancel()
	log := &history.Log{}
	var group sync.WaitGroup
	run, stop := context.WithCancel(ctx)
	for _, name := range []string{"A", "B"} {
		r := &history.Recorder{Election: "e", Candidate: name, Tell: log.Tell}
		e, err := elector.Open(ctx, "file://"+dir, "e", &elector.Options{ID: name, TTL: time.Second, Trace: r.Trace(), Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { r.WatchStalls(run) })
		group.Go(func() {
			defer e.Close()
			err := e.Run(run, func(ctx context.Context, lease *elector.Lease) error {
				for r.Look(history.Acquired, lease, 0); ctx.Err() == nil; {
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
						r.Look(history.Checked, lease, 0)
					}
				}
				r.Event(history.Event{Kind: history.Canceled, Token: lease.Token()})
				return nil
			})
			if run.Err() == nil {
				r.Event(history.Event{Kind: history.Fatal, Detail: err.Error()})
			}
		})
	}
	defer group.Wait()
	defer stop()
	wait := func(position int, what string, match func(history.Event) bool) history.Event {
		t.Helper()
		e, err := log.Wait(ctx, position, what, match)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := wait(0, "a leader", func(e history.Event) bool { return e.Kind == history.Acquired })
	wait(0, "the other one to see it", func(e history.Event) bool { return e.Kind == history.Waits })

	position := log.Position()
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	filler.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: got %v, want ENOSPC", err)
	}
	trouble := wait(position, "trouble", func(e history.Event) bool { return e.Kind.IsFailure() && strings.Contains(e.Detail, "swap") })
	if !strings.Contains(trouble.Detail, "no space left on device") || !strings.Contains(trouble.Detail, dir) {
		t.Errorf("the error does not say what and where: %s", trouble.Detail)
	}
	ended := wait(position, "the loss", func(e history.Event) bool { return e.Kind == history.Ended && e.Token == first.Token })
	if !strings.HasPrefix(ended.Detail, "lost") {
		t.Errorf("the lease ended otherwise: %v", ended)
	}
	// The other one has waited for C when it tries to write, and cannot: before
	// that it only reads.
	wait(position, "a try to take over", func(e history.Event) bool {
		return e.Kind.IsFailure() && e.Candidate != first.Candidate && strings.Contains(e.Detail, "swap")
	})
	events, full, _ := log.From(position)
	for _, e := range events {
		if e.Kind == history.Acquired {
			t.Errorf("a leader without room for its record: %v", e)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "e.json"))
	if r, decodeErr := backends.Decode("e", content); err != nil || decodeErr != nil || elector.Token(r.Token) != first.Token {
		t.Errorf("the full disk has spoiled the record: %v, %v: %q", err, decodeErr, content)
	}

	if err := os.Remove(filler.Name()); err != nil {
		t.Fatal(err)
	}
	second := wait(full, "a leader when there is room again", func(e history.Event) bool { return e.Kind == history.Acquired })
	if second.Token <= first.Token {
		t.Errorf("tok/strict: token %v after %v", second.Token, first.Token)
	}
	stop()
	group.Wait()
	events, _, _ = log.From(0)
	h := &history.History{Elections: []history.Election{{Store: File, Name: "e", Rules: history.RulesOf(time.Second, 0)}}, Events: events}
	h.Sort()
	for _, v := range checker.Check(h) {
		if v.Rule != "mx/takeover-bound" { // there was no room
			t.Error(v)
		}
	}
}
