package main

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/proof/child"
)

// A stamp shows that a process was alive at a time.
type stamp struct {
	token uint64 // of the term that started it
	pid   int
	at    time.Duration // since boot
}

const stampSize = 24

// memberArgument makes this program a descendant of a command under an election.
const memberArgument = "member"

// member is the command, its child, or a daemon in a session of its own. It ignores
// SIGTERM, and stamps the journal while it lives. With "once" it is a job that takes
// 100 ms.
func member(journal, role string) error {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGHUP)
	f, err := os.OpenFile(journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	text := os.Getenv("ELECTOR_TOKEN")
	if text == "" {
		text = os.Getenv("ETCD_LOCK_REV")
	}
	token, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("no token: %w", err)
	}
	begin := func(role string, a *syscall.SysProcAttr) (*exec.Cmd, error) {
		c := exec.Command("/proc/self/exe", memberArgument, journal, role)
		c.SysProcAttr = a
		return c, c.Start()
	}
	switch role {
	case "command":
		if _, err := begin("grandchild", nil); err != nil {
			return err
		}
		between, err := begin("between", nil)
		if err != nil {
			return err
		}
		between.Wait()
	case "between": // the second fork: the daemon's parent ends
		_, err := begin("daemon", &syscall.SysProcAttr{Setsid: true})
		return err
	}
	ends := time.Now().Add(100 * time.Millisecond)
	for role != "once" || time.Now().Before(ends) {
		b := binary.NativeEndian.AppendUint64(nil, token)
		b = binary.NativeEndian.AppendUint64(b, uint64(os.Getpid()))
		b = binary.NativeEndian.AppendUint64(b, uint64(clock.Shared()))
		if _, err := f.Write(b); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// A term is what the journal shows of one token.
type term struct {
	token       uint64
	first, last time.Duration
	pids        []int
}

// A journal is read as it grows.
type journal struct {
	path   string
	offset int64
	terms  map[uint64]*term
}

// read returns the terms so far, by their tokens.
func (j *journal) read() ([]term, error) {
	f, err := os.Open(j.path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	if err == nil {
		defer f.Close()
		content, err := io.ReadAll(io.NewSectionReader(f, j.offset, 1<<40))
		if err != nil {
			return nil, err
		}
		j.add(content)
	}
	var all []term
	for _, t := range j.terms {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(a, b term) int { return cmp.Compare(a.token, b.token) })
	return all, nil
}

func (j *journal) add(content []byte) {
	if j.terms == nil {
		j.terms = map[uint64]*term{}
	}
	for ; len(content) >= stampSize; content = content[stampSize:] {
		j.offset += stampSize
		s := stamp{binary.NativeEndian.Uint64(content), int(binary.NativeEndian.Uint64(content[8:])), time.Duration(binary.NativeEndian.Uint64(content[16:]))}
		t := j.terms[s.token]
		if t == nil {
			t = &term{token: s.token, first: s.at}
			j.terms[s.token] = t
		}
		t.first, t.last = min(t.first, s.at), max(t.last, s.at)
		if !slices.Contains(t.pids, s.pid) {
			t.pids = append(t.pids, s.pid)
		}
	}
}

// overlaps counts the pairs of terms whose processes were alive at once, and returns
// the longest time.
func overlaps(terms []term) (n int, longest time.Duration) {
	for i, t := range terms {
		for _, later := range terms[i+1:] {
			if d := t.last - later.first; d > 0 {
				n, longest = n+1, max(longest, d)
			}
		}
	}
	return n, longest
}

// sweep kills what a demo has left alive, found by the journal.
func (j *journal) sweep() {
	table, _ := child.Table()
	for _, p := range table {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
		if args := splitNul(line); err == nil && len(args) == 4 && args[1] == memberArgument && args[2] == j.path {
			syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
}

func splitNul(b []byte) (all []string) {
	for start, i := 0, 0; i < len(b); i++ {
		if b[i] == 0 {
			all, start = append(all, string(b[start:i])), i+1
		}
	}
	return all
}
