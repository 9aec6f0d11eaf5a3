package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/fsnotify/fsnotify"
)

// watching runs a Watch. States come in order; stop ends it and returns what
// it returned.
type watching struct {
	testing.TB
	states chan backends.Record
	result chan error
	cancel context.CancelFunc
}

func watch(t testing.TB, h *Backend, name string) *watching {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watching{t, make(chan backends.Record, 1000), make(chan error, 1), cancel}
	go func() { w.result <- h.Watch(ctx, name, func(r backends.Record) { w.states <- r }) }()
	t.Cleanup(cancel)
	return w
}

// until waits for a state.
func (w *watching) until(want backends.Record) {
	w.Helper()
	for timeout := time.After(watchdog); ; {
		select {
		case r := <-w.states:
			if r == want {
				return
			}
		case err := <-w.result:
			w.Fatalf("Watch returned %v before it showed %+v", err, want)
		case <-timeout:
			w.Fatalf("Watch did not show %+v", want)
		}
	}
}

func (w *watching) ended() error {
	w.Helper()
	select {
	case err := <-w.result:
		return err
	case <-time.After(watchdog):
		w.Fatal("Watch did not return")
		return nil
	}
}

func (w *watching) stop() {
	w.Helper()
	w.cancel()
	if err := w.ended(); !errors.Is(err, context.Canceled) {
		w.Errorf("a cancelled Watch returned %v", err)
	}
}

func idle(t testing.TB) {
	t.Helper()
	shared.setup.Lock()
	defer shared.setup.Unlock()
	shared.mutex.Lock()
	defer shared.mutex.Unlock()
	if shared.watcher != nil || len(shared.dirs) != 0 {
		t.Error("a watcher runs without any Watch")
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	a, b := handle(t, dir), handle(t, dir)
	w, other := watch(t, a, "e"), watch(t, a, "other")
	w.until(backends.Record{})
	other.until(backends.Record{})
	var r backends.Record
	for i := range uint64(20) {
		r = swap(t, b, "e", r, record("b", i+1))
		w.until(r)
	}
	if err := os.Remove(filepath.Join(dir, "e.json")); err != nil {
		t.Fatal(err)
	}
	w.until(backends.Record{})
	w.stop()
	other.until(swap(t, b, "other", backends.Record{}, record("b", 1))) // still served
	other.stop()
	idle(t)
}

// TestWatchShared: one instance for all directories, and for two paths to one.
func TestWatchShared(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	var all []*watching
	handles := []*Backend{handle(t, one), handle(t, two), handle(t, link), handle(t, one)}
	for _, h := range handles {
		w := watch(t, h, "e")
		w.until(backends.Record{})
		all = append(all, w)
	}
	shared.mutex.Lock()
	if n := len(shared.dirs); n != 2 {
		t.Errorf("%d directories are watched, not 2", n)
	}
	shared.mutex.Unlock()
	all[0].stop() // the first user of a directory is not its owner
	r := swap(t, handles[0], "e", backends.Record{}, record("a", 1))
	all[2].until(r)
	all[3].until(r)
	r = swap(t, handles[1], "e", backends.Record{}, record("b", 1))
	all[1].until(r)
	for _, w := range all[1:] {
		w.stop()
	}
	idle(t)
}

func TestWatchEnds(t *testing.T) {
	for name, do := range map[string]func(dir string, h *Backend) error{
		"removed": func(dir string, h *Backend) error { return os.RemoveAll(dir) },
		"moved":   func(dir string, h *Backend) error { return os.Rename(dir, dir+"-away") },
		"closed":  func(dir string, h *Backend) error { return h.Close() },
		"trouble": func(dir string, h *Backend) error { shared.trouble(errors.New("read failed")); return nil },
		"foreign": func(dir string, h *Backend) error {
			return os.WriteFile(filepath.Join(dir, "e.json"), []byte("x"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			h := handle(t, dir)
			w := watch(t, h, "e")
			w.until(backends.Record{})
			if err := do(dir, h); err != nil {
				t.Fatal(err)
			}
			want := backends.ErrUnavailable
			if name == "foreign" {
				want = backends.ErrForeignRecord
			}
			if err := w.ended(); !errors.Is(err, want) {
				t.Errorf("Watch returned %v", err)
			}
			idle(t)
			if name == "removed" { // and begins anew
				h := handle(t, dir)
				w := watch(t, h, "e")
				w.until(backends.Record{})
				w.until(swap(t, h, "e", backends.Record{}, record("a", 1)))
				w.stop()
			}
		})
	}
}

// TestWatchOverflow: when events were lost everybody reads again.
func TestWatchOverflow(t *testing.T) {
	h := handle(t, t.TempDir())
	w := watch(t, h, "e")
	w.until(backends.Record{})
	shared.trouble(fsnotify.ErrEventOverflow)
	w.until(backends.Record{})
	w.stop()
}
