package chaos

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A folder gives the records of the file backend. It implements raw.Records.
type folder string

func (f folder) path(election string) string { return filepath.Join(string(f), election+".json") }

func (f folder) Get(_ context.Context, election string) ([]byte, error) {
	content, err := os.ReadFile(f.path(election))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return content, err
}

// Put does as an editor or a restored backup does: it renames a file, so that
// nobody reads half of it.
func (f folder) Put(_ context.Context, election string, content []byte) error {
	restored := filepath.Join(string(f), "restored")
	if err := os.WriteFile(restored, content, 0o600); err != nil {
		return err
	}
	return os.Rename(restored, f.path(election))
}

func (f folder) Delete(_ context.Context, election string) error {
	if err := os.Remove(f.path(election)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
