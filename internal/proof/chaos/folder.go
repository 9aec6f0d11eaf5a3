package chaos

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/raw"
)

// A folder gives the records of the file backend. It implements raw.Records.
type folder struct {
	raw.JSON
	dir string
}

func (f folder) path(election string) string { return filepath.Join(f.dir, election+".json") }

func (f folder) Get(_ context.Context, election string) ([]byte, error) {
	content, err := os.ReadFile(f.path(election))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Put does as an editor or a restored backup does: it renames a file, so that no reader
// sees half of it. It takes the lock that the candidates take: a candidate that had read the file
// before, and renames its own after, would undo it at once, and the account could not say so.
func (f folder) Put(ctx context.Context, election string, content []byte) error {
	err := f.locked(ctx, election, func() error { return f.put(election, content) })
	if errors.Is(err, fs.ErrNotExist) { // no candidate has come yet
		return f.put(election, content)
	}
	return err
}

func (f folder) put(election string, content []byte) error {
	restored := filepath.Join(f.dir, "restored")
	if err := os.WriteFile(restored, content, 0o600); err != nil {
		return err
	}
	return os.Rename(restored, f.path(election))
}

// Replace compares and writes under the lock.
func (f folder) Replace(ctx context.Context, election string, old, content []byte) (done bool, err error) {
	err = f.locked(ctx, election, func() error {
		now, err := f.Get(ctx, election)
		if err != nil || !bytes.Equal(now, old) {
			return err
		}
		err = f.put(election, content)
		done = err == nil
		return err
	})
	return done, err
}

// locked calls do under the lock that the candidates take.
func (f folder) locked(ctx context.Context, election string, do func() error) error {
	lock, err := os.OpenFile(filepath.Join(f.dir, election+".lock"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer lock.Close() // and with it our lock
	for {
		locked, err := tryLock(lock)
		if err != nil {
			return err
		}
		if locked {
			return do()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// tryLock reports whether the lock was free, and is ours now until the file is
// closed.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

func (f folder) Delete(_ context.Context, election string) error {
	if err := os.Remove(f.path(election)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
