package file

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

const (
	// readLimit is one byte more than backends.Decode takes, so that a huge
	// file costs no memory and is still foreign.
	readLimit = 64<<10 + 1

	// No election's name starts with a dot.
	temporaryPrefix = ".tmp-"

	// staleAfter is far longer than any call lasts. A writer that was stopped
	// for longer finds its temporary file gone, and its Swap fails.
	staleAfter = time.Hour
)

// prepare makes sure that the directory exists, is local, and can be read and
// written. Who may read it may read its records.
func (b *Backend) prepare(how manner) error {
	info, err := os.Stat(b.dir)
	if errors.Is(err, fs.ErrNotExist) {
		switch how {
		case reading:
			return fmt.Errorf("%w: %w; so no election has ever used it: check the path in the URL", backends.ErrMisconfigured, err)
		case existing:
			return fmt.Errorf("%w: %w; create it, or drop create=false", backends.ErrMisconfigured, err)
		}
		err = os.Mkdir(b.dir, 0o700)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%w: %w; create its parent directory, which is missing as well", backends.ErrMisconfigured, err)
		case err == nil:
			err = syncDirectory(filepath.Dir(b.dir))
		case errors.Is(err, fs.ErrExist): // by another candidate, just now
			err = nil
		}
		if err == nil {
			info, err = os.Stat(b.dir)
		}
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: it is not a directory; name one", backends.ErrMisconfigured)
	}
	kind, err := remoteFileSystem(b.dir)
	if err != nil {
		return fmt.Errorf("asking for its file system: %w", err)
	}
	if kind != "" {
		return fmt.Errorf("%w: it is on a network or FUSE file system (%s), where locks and renames are not reliable; name a directory on a local disk, or use a store with a server for candidates on several machines",
			backends.ErrMisconfigured, kind)
	}
	if how == reading {
		if _, err := os.ReadDir(b.dir); err != nil {
			return fmt.Errorf("listing the directory: %w", err)
		}
		return nil
	}
	b.mode = 0o600 | info.Mode().Perm()&0o044
	if err := b.removeStale(); err != nil {
		return fmt.Errorf("listing the directory: %w", err)
	}
	probe, err := b.writeTemporary([]byte("probe\n"))
	if err == nil {
		err = os.Remove(probe)
	}
	if err != nil {
		return fmt.Errorf("writing a first file: %w", err)
	}
	return nil
}

// removeStale removes the temporary files that killed processes left.
func (b *Backend) removeStale() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), temporaryPrefix) {
			continue
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > staleAfter {
			os.Remove(b.path(e.Name())) // if not now, the next time
		}
	}
	return nil
}

// writeTemporary writes a file that is on the disk when it returns its path.
func (b *Backend) writeTemporary(content []byte) (path string, err error) {
	f, err := os.CreateTemp(b.dir, temporaryPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(content)
	if err == nil && b.mode != 0o600 {
		err = f.Chmod(b.mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// read returns the content of the file, up to readLimit, and nil if there is none.
// Anything but a regular file, such as a symbolic link, is foreign.
func read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", path, backends.Foreign("it is no regular file"))
	}
	if err != nil {
		return nil, err
	}
	// A pipe may have replaced the file between the two calls: do not hang.
	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, readLimit))
	if err != nil {
		return nil, err
	}
	return content, nil // not nil: ReadAll returns an empty slice
}

// syncDirectory makes a rename in the directory durable.
func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
