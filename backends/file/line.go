package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/elector-go/elector/backends"
)

// A place in line is a file of its own, written without the lock: of two that write it
// at the same time the later one counts. An acquisition removes it.

// places are those that a handle has taken, by the election's name.
type places struct {
	mutex sync.Mutex
	taken map[string]string
}

func (b *Backend) placePath(name string) string { return b.path(name + ".next") }

// place returns the place in line. One that cannot be read is none.
func (b *Backend) place(name string) string {
	content, err := read(b.placePath(name))
	if err != nil {
		return ""
	}
	return string(content)
}

// SwapPlace implements [backends.Liner].
func (b *Backend) SwapPlace(ctx context.Context, name, prev, next string) error {
	return b.handle.SwapPlace(ctx, name, func(context.Context) error {
		if b.place(name) != prev {
			return backends.ErrConflict
		}
		b.places.note(name, next)
		return b.setPlace(name, prev, next)
	})
}

func (b *Backend) setPlace(name, prev, next string) error {
	path := b.placePath(name)
	if next == "" {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	temporary, err := b.writeHint([]byte(next))
	if err != nil {
		return err
	}
	defer os.Remove(temporary)
	if prev != "" {
		return os.Rename(temporary, path)
	}
	if err = os.Link(temporary, path); errors.Is(err, fs.ErrExist) {
		return backends.ErrConflict
	}
	return err
}

// writeHint writes a file that need not reach the disk.
func (b *Backend) writeHint(content []byte) (path string, err error) {
	f, err := os.CreateTemp(b.dir, temporaryPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

func (p *places) note(name, place string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if place == "" {
		delete(p.taken, name)
		return
	}
	if p.taken == nil {
		p.taken = map[string]string{}
	}
	p.taken[name] = place
}

// leaveAll removes the places that this handle has taken.
func (b *Backend) leaveAll() {
	b.places.mutex.Lock()
	defer b.places.mutex.Unlock()
	for name, place := range b.places.taken {
		if b.place(name) == place {
			os.Remove(b.placePath(name))
		}
	}
}
