package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/fsnotify/fsnotify"
)

// lookEvery is how often a Watch checks whether the path still leads to the
// directory that it watches. There is no notification when a parent directory is
// moved or another file system is mounted over it.
const lookEvery = 10 * time.Second

// Watch implements [backends.Watcher].
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error { return b.watch(ctx, name, changed) })
}

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	s, err := shared.subscribe(b.dir, name+".json")
	if err != nil {
		return unwatchable(err)
	}
	defer shared.unsubscribe(s)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := b.load(name)
		if err != nil {
			return err
		}
		changed(r)
		for woken := false; !woken; {
			select {
			case <-s.woken:
				woken = true
			case <-look.C:
				info, err := os.Stat(b.dir)
				if err != nil {
					return unwatchable(err)
				}
				if !os.SameFile(info, s.dir.info) {
					return unwatchable(errReplaced)
				}
			case <-s.ended:
				return unwatchable(s.err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}

var errReplaced = errors.New("the directory was removed, or another one is in its place")

// unwatchable is never permanent: the elector polls meanwhile, and tries again.
func unwatchable(err error) error {
	advice := "records are polled meanwhile"
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENOSPC) {
		advice += "; raise fs.inotify.max_user_instances and max_user_watches, or the limit of open files"
	}
	return fmt.Errorf("%w: no notification of changes: %s: %w", backends.ErrUnavailable, advice, err)
}

// shared is what all Watches of the process subscribe to. It has one watcher,
// with its goroutines, while there are subscriptions.
var shared = notifier{dirs: map[string]*directory{}}

type notifier struct {
	// setup is held while directories are added to and removed from the
	// watcher: quick system calls on directories that were just looked up. The
	// goroutine that reads events never takes it, as they wait for that.
	setup   sync.Mutex
	watcher *fsnotify.Watcher // nil without subscriptions
	done    chan struct{}     // closed when its reader has returned

	mutex sync.Mutex // guards dirs and what is in it
	dirs  map[string]*directory
}

type directory struct {
	path  string
	info  os.FileInfo
	files map[string][]*subscription // by the file's name in the directory
}

type subscription struct {
	dir   *directory
	file  string
	woken chan struct{} // holds one value when the file changed
	ended chan struct{} // closed when no more will come, because of err
	err   error
}

func (n *notifier) subscribe(dir, file string) (*subscription, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	n.setup.Lock()
	defer n.setup.Unlock()
	if n.watcher == nil {
		if n.watcher, err = fsnotify.NewWatcher(); err != nil {
			n.watcher = nil
			return nil, err
		}
		n.done = make(chan struct{})
		go n.read(n.watcher, n.done)
	}
	s := &subscription{file: file, woken: make(chan struct{}, 1), ended: make(chan struct{})}
	isNew, err := n.insert(s, dir, info)
	if err == nil && isNew {
		err = n.watcher.Add(dir)
	}
	if err != nil {
		n.remove(s)
		return nil, err
	}
	return s, nil
}

// insert reports whether the directory is a new one. The kernel identifies a
// directory by its inode and not by its path.
func (n *notifier) insert(s *subscription, dir string, info os.FileInfo) (isNew bool, err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, d := range n.dirs {
		if os.SameFile(d.info, info) {
			s.dir = d
		}
	}
	if s.dir == nil {
		if n.dirs[dir] != nil { // its Watches will notice soon
			return false, errReplaced
		}
		s.dir = &directory{path: dir, info: info, files: map[string][]*subscription{}}
		n.dirs[dir] = s.dir
		isNew = true
	}
	s.dir.files[s.file] = append(s.dir.files[s.file], s)
	return isNew, nil
}

func (n *notifier) unsubscribe(s *subscription) {
	n.setup.Lock()
	defer n.setup.Unlock()
	n.remove(s)
}

// remove ends what no subscription needs any more; setup is held.
func (n *notifier) remove(s *subscription) {
	unused, empty := n.forget(s)
	if n.watcher == nil {
		return
	}
	if unused {
		n.watcher.Remove(s.dir.path) // an error means that the directory is gone
	}
	if empty {
		n.watcher.Close()
		<-n.done
		n.watcher = nil
	}
}

// forget reports whether s was the last one in its directory, and whether no
// directory is left.
func (n *notifier) forget(s *subscription) (unused, empty bool) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if d := s.dir; d != nil {
		d.files[s.file] = slices.DeleteFunc(d.files[s.file], func(o *subscription) bool { return o == s })
		if len(d.files[s.file]) == 0 {
			delete(d.files, s.file)
		}
		if len(d.files) == 0 && n.dirs[d.path] == d {
			delete(n.dirs, d.path)
			unused = true
		}
	}
	return unused, len(n.dirs) == 0
}

// read passes events on until the watcher is closed.
func (n *notifier) read(w *fsnotify.Watcher, done chan struct{}) {
	defer close(done)
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			n.event(e)
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			n.trouble(err)
		}
	}
}

func (n *notifier) event(e fsnotify.Event) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if d := n.dirs[e.Name]; d != nil && e.Has(fsnotify.Remove|fsnotify.Rename) {
		n.end(d, errReplaced)
	}
	if d := n.dirs[filepath.Dir(e.Name)]; d != nil {
		wake(d.files[filepath.Base(e.Name)])
	}
}

// trouble wakes all subscriptions after lost events, and ends them after any other
// error.
func (n *notifier) trouble(err error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	for _, d := range n.dirs {
		if !errors.Is(err, fsnotify.ErrEventOverflow) {
			n.end(d, err)
			continue
		}
		for _, subscriptions := range d.files {
			wake(subscriptions)
		}
	}
}

// end ends the directory's subscriptions; mutex is held.
func (n *notifier) end(d *directory, err error) {
	delete(n.dirs, d.path)
	for _, subscriptions := range d.files {
		for _, s := range subscriptions {
			s.err = err
			close(s.ended)
		}
	}
}

func wake(subscriptions []*subscription) {
	for _, s := range subscriptions {
		select {
		case s.woken <- struct{}{}:
		default:
		}
	}
}
