package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/elector-go/elector/backends"
	"golang.org/x/sys/unix"
)

func descriptors(t *testing.T) (all, inotify int) {
	t.Helper()
	for _, fd := range names(t, "/proc/self/fd") {
		target, err := os.Readlink("/proc/self/fd/" + fd)
		if err != nil || strings.Contains(target, "eventpoll") || strings.Contains(target, "eventfd") {
			continue // the listing's own, or the runtime's
		}
		all++
		if strings.Contains(target, "inotify") {
			inotify++
		}
	}
	return all, inotify
}

// TestDescriptors: one inotify instance while Watches run, nothing afterwards.
func TestDescriptors(t *testing.T) {
	dir := t.TempDir()
	before, _ := descriptors(t)
	for range 5 {
		h := handle(t, dir)
		var watches []*watching
		for i := range 20 {
			w := watch(t, h, fmt.Sprint("e", i))
			<-w.states
			watches = append(watches, w)
		}
		if _, n := descriptors(t); n != 1 {
			t.Errorf("%d inotify instances", n)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				name := fmt.Sprint("e", i)
				h.Swap(context.Background(), name, load(t, h, name), record("a", 1))
				h.Swap(context.Background(), name, backends.Record{}, record("a", 2)) // a conflict
			})
		}
		wg.Wait()
		for _, w := range watches {
			w.stop()
		}
		h.Close()
	}
	if after, n := descriptors(t); after != before || n != 0 {
		t.Errorf("%d descriptors before, %d after, %d of them inotify", before, after, n)
	}
	idle(t)
}

// TestWatchImpossible: without an inotify instance Watch says what to do, is
// worth another try, and leaves nothing behind.
func TestWatchImpossible(t *testing.T) {
	h := handle(t, t.TempDir())
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	err := h.Watch(context.Background(), "e", func(backends.Record) { t.Error("changed was called") })
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, unix.EMFILE) || !errors.Is(err, backends.ErrUnavailable) || backends.Permanent(err) || !strings.Contains(err.Error(), "max_user_instances") {
		t.Errorf("Watch returned %v", err)
	}
	idle(t)
	w := watch(t, h, "e")
	w.until(backends.Record{})
	w.until(swap(t, h, "e", backends.Record{}, record("a", 1)))
	w.stop()
}

// TestLockRemoved: a lock on a file that no longer exists excludes no process.
func TestLockRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "e.lock")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	os.Remove(path)
	if taken, err := take(f); taken || err != nil {
		t.Errorf("took the lock of a removed file: %v, %v", taken, err)
	}
	lock, err := tryLock(path)
	if lock == nil || err != nil {
		t.Fatal(lock, err)
	}
	defer unlock(lock)
	if taken, err := take(f); taken || err != nil {
		t.Errorf("took the lock of a file that was replaced: %v, %v", taken, err)
	}
	if again, err := tryLock(path); again != nil || err != nil {
		t.Errorf("one process took the lock twice: %v, %v", again, err)
	}
}

// TestFileSystems pretends that the directory's file system is a remote one.
func TestFileSystems(t *testing.T) {
	dir := t.TempDir()
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		t.Fatal(err)
	}
	kind := uint32(s.Type)
	remote[kind] = "test"
	defer delete(remote, kind)
	if h, err := New(dir); h != nil || !errors.Is(err, backends.ErrMisconfigured) || !backends.Permanent(err) {
		t.Errorf("%v, %v", h, err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}

// A process that may only read the directory, which is another user's, reads all records,
// and is refused every write by the kernel.
func TestReaderOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); parent != os.TempDir() && parent != "/"; parent = filepath.Dir(parent) {
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := handle(t, dir)
	r := backends.Record{Holder: "h", Token: 1, TTL: 1e9, RenewEvery: 1e8, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, r); err != nil {
		t.Fatal(err)
	}
	asReader := func(look func()) {
		done := make(chan struct{})
		if os.Geteuid() != 0 {
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(dir, 0o755)
			look()
			return
		}
		go func() {
			defer close(done)
			runtime.LockOSThread() // and the thread ends with the goroutine
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 65534, 65534, 65534); errno != 0 {
				t.Error(errno)
				return
			}
			look()
		}()
		<-done
	}
	asReader(func() {
		b, err := backends.OpenReadOnly(context.Background(), "file://"+dir)
		if err != nil {
			t.Error(err)
			return
		}
		defer b.Close()
		if got, err := b.Load(context.Background(), "a"); err != nil || got.Holder != "h" {
			t.Errorf("the record is %+v, %v", got, err)
		}
		if names, err := b.(backends.Lister).List(context.Background()); err != nil || len(names) != 1 {
			t.Errorf("the elections are %q, %v", names, err)
		}
		if _, err := backends.Open(context.Background(), "file://"+dir); !errors.Is(err, backends.ErrDenied) {
			t.Errorf("a candidate without the right to write: %v", err)
		}
	})
	if names, err := filepath.Glob(filepath.Join(dir, ".tmp-*")); err != nil || len(names) > 0 {
		t.Errorf("a reader leaves %q", names)
	}
}
