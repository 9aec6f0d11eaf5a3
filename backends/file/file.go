// Package file keeps election records in a directory, for processes on one
// machine that share no server. See docs/stores/file.md for permissions, file systems
// and what not to do with the files.
//
// # URLs
//
// file:///var/lib/myservice names a directory by its absolute path. With
// ?create=false the directory must exist; otherwise Open creates it, but not its
// parents. With ?readonly=true it needs only the right to read, and creates nothing, see
// [backends.OpenReadOnly]. [New] does the same as the first without a URL.
//
// # Consistency
//
// Linearizable among the processes of one kernel, including containers that share
// a volume. A change writes and syncs a temporary file, takes the lock with flock,
// compares the record's bytes, renames the temporary file over the record,
// releases the lock, and syncs the directory. A read takes no lock. The version of
// a record is its content, which contains the attempt and so never comes back.
//
// # Expiry
//
// By the elector's rule alone. On Linux Watch pushes every change, renewals
// included; on other systems it is a hint. All handles of a process share one
// inotify instance, because a user has few. If none is left, Watch returns an error
// and the elector polls.
//
// # Fencing
//
// The package guards no writes. docs/fencing.md lists the fences that work with a lease
// of any store.
package file

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

func init() {
	backends.Register("file", func(ctx context.Context, u *url.URL) (backends.Backend, error) {
		dir, how, err := parse(u)
		if err != nil {
			return nil, err
		}
		b, err := open(ctx, dir, how)
		if err != nil {
			return nil, err // not a nil *Backend in a Backend
		}
		return b, nil
	})
}

// A manner is how a directory is opened.
type manner uint8

const (
	createMissing manner = iota
	existing
	reading // and nothing else
)

func parse(u *url.URL) (dir string, how manner, err error) {
	p := backends.NewParameters(u)
	create, readOnly := p.Bool("create", true), p.Bool("readonly", false)
	switch {
	case readOnly:
		how = reading
	case !create:
		how = existing
	}
	if err := p.Done(); err != nil {
		return "", how, err
	}
	switch {
	case u.User != nil:
		err = fmt.Errorf("%w: a file URL takes no user; write file:///var/lib/myservice", backends.ErrURL)
	case u.Host != "" && u.Host != "localhost":
		// Do not show it: a user and a password with a slash look like a host.
		err = fmt.Errorf("%w: a file URL takes no host; write three slashes, as in file:///var/lib/myservice", backends.ErrURL)
	case u.Fragment != "":
		err = fmt.Errorf("%w: what follows '#' would be ignored; write %%23 for a '#' in the path", backends.ErrURL)
	case u.Opaque != "":
		err = fmt.Errorf("%w: the path is relative; write an absolute one, as in file:///var/lib/myservice", backends.ErrURL)
	case filepath.Clean("/"+u.Path) == "/" || strings.ContainsRune(u.Path, 0):
		err = fmt.Errorf("%w: it names no directory of its own; write file:///var/lib/myservice, say", backends.ErrURL)
	}
	return u.Path, how, err
}

// A Backend keeps records in a directory. Open and New make it.
type Backend struct {
	dir  string
	mode os.FileMode // of records
	base *backends.Base
}

var (
	_ backends.Watcher = (*Backend)(nil)
	_ backends.Lister  = (*Backend)(nil)
)

// New returns a Backend on the directory, an absolute path. It creates the
// directory if it is missing, but not its parents, and writes a file to see
// whether it can. It blocks for as long as the disk does, and returns
// ErrMisconfigured, ErrDenied, ErrReadOnly or ErrUnavailable of package
// backends, with what to do.
func New(dir string) (*Backend, error) { return open(context.Background(), dir, createMissing) }

func open(ctx context.Context, dir string, how manner) (*Backend, error) {
	b := newBackend(filepath.Clean(dir))
	b.base.SetReadOnly(how == reading)
	err := b.base.Do(ctx, "opening "+b.base.Store(), func(context.Context) error {
		switch {
		case !supported:
			return fmt.Errorf("%w: the file backend runs on Linux, macOS and FreeBSD, not on %s; use another store", backends.ErrMisconfigured, runtime.GOOS)
		case !filepath.IsAbs(dir):
			return fmt.Errorf("%w: the directory %q is relative, so that it depends on where a candidate was started; name an absolute one", backends.ErrMisconfigured, dir)
		}
		return b.prepare(how)
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func newBackend(dir string) *Backend {
	store := &url.URL{Scheme: "file", Path: dir}
	b := &Backend{dir: dir, mode: 0o600}
	b.base = backends.NewBase(store.String(), b.classify)
	return b
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(context.Context) (backends.Record, error) { return b.load(name) })
}

func (b *Backend) load(name string) (backends.Record, error) {
	path := b.path(name + ".json")
	content, err := read(path)
	if err == nil && content == nil {
		_, err = os.Stat(b.dir) // a missing directory is no vacancy
	}
	if err != nil || content == nil {
		return backends.Record{}, err
	}
	r, err := backends.Decode(name, content)
	if err != nil {
		return backends.Record{}, fmt.Errorf("%s: %w", path, err)
	}
	r.Version = backends.Version(content)
	return r, nil
}

// List implements [backends.Lister].
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(context.Context) (names []string, _ error) {
		entries, err := os.ReadDir(b.dir)
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
				names = append(names, name)
			}
		}
		return names, err
	})
}

// Swap implements [backends.Backend].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		content := backends.Encode(name, next)
		temporary, err := b.writeTemporary(content)
		if err != nil {
			return backends.Record{}, fmt.Errorf("writing a temporary file: %w", err)
		}
		if err := b.exchange(ctx, name, prev.Version, temporary); err != nil {
			os.Remove(temporary)
			return backends.Record{}, err
		}
		if err := syncDirectory(b.dir); err != nil {
			// Every process sees the new record already: never a conflict.
			return backends.Record{}, fmt.Errorf("syncing the directory, with the record replaced already: %w", err)
		}
		next.Version = backends.Version(content)
		return next, nil
	})
}

// exchange takes the election's lock, trying until ctx ends, and replaces the
// record by the temporary file if its version is prev. It does not block in
// flock, which has no deadline.
func (b *Backend) exchange(ctx context.Context, name string, prev backends.Version, temporary string) error {
	path := b.path(name + ".lock")
	for pause := time.Millisecond; ; pause = min(2*pause, 16*time.Millisecond) {
		lock, err := tryLock(path)
		if err != nil {
			return fmt.Errorf("locking the record: %w", err)
		}
		if lock != nil {
			defer unlock(lock)
			return b.replace(ctx, name, prev, temporary)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return fmt.Errorf("%w: other processes held the lock %s all the time: %w; if that lasts, a stopped or frozen process holds it: find it (fuser, lsof) and continue or kill it, but do not delete the file",
				backends.ErrUnavailable, path, ctx.Err())
		}
	}
}

// replace is all that happens under the lock. A process that is stopped here
// delays all others, so it is as short as possible.
func (b *Backend) replace(ctx context.Context, name string, prev backends.Version, temporary string) error {
	path := b.path(name + ".json")
	content, err := read(path)
	if err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	// An empty file exists, although its content is that of a missing one.
	if (content == nil) != (prev == "") || string(content) != string(prev) {
		return backends.ErrConflict
	}
	if err := ctx.Err(); err != nil {
		return err // the caller has given up: write nothing late
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replacing the record: %w", err)
	}
	return nil
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	// Elsewhere notifications come from comparing listings, which can miss a
	// replaced file.
	return backends.Description{Store: b.base.Store(), PushesRenewals: runtime.GOOS == "linux", ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend].
func (b *Backend) Close() error {
	return b.base.Close(nil)
}

func (b *Backend) path(file string) string { return filepath.Join(b.dir, file) }
