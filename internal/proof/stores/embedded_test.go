package stores

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/file"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/conformance"
)

func TestMemory(t *testing.T) {
	s := memory.NewStore()
	conform(t, "memory", "in the test's process", conformance.Harness{
		Open:          func(testing.TB) backends.Backend { return s.Handle() },
		OpenReadOnly:  func(testing.TB) backends.Backend { return s.ReadOnly() },
		NotApplicable: map[string]string{"bad/schema": "memory has no set-up that could be wrong", "amb/client": "memory has no client that could fail"},
		Raw: &conformance.Raw{
			Get:    func(_ testing.TB, name string) []byte { return s.Get(name) },
			Put:    func(_ testing.TB, name string, content []byte) { s.Put(name, content) },
			Delete: func(_ testing.TB, name string) { s.Delete(name) },
			Depose: func(_ testing.TB, name string) { s.Depose(name) },
		},
	})
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name+".json") }
	conform(t, "file", "a folder of this machine", conformance.Harness{
		Open:          opener("file://" + dir),
		OpenReadOnly:  readOnlyOpener("file://" + dir),
		Slow:          true,
		NotApplicable: map[string]string{"amb/client": "a folder has no client that could fail"},
		Raw: &conformance.Raw{
			Get: func(t testing.TB, name string) []byte {
				content, err := os.ReadFile(path(name))
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				must(t, err)
				return content
			},
			// As an editor or a restored backup would: by a rename, so that
			// no process reads half of it.
			Put: func(t testing.TB, name string, content []byte) {
				restored := filepath.Join(dir, "restored")
				must(t, os.WriteFile(restored, content, 0o600))
				must(t, os.Rename(restored, path(name)))
			},
			Delete: func(t testing.TB, name string) { must(t, os.Remove(path(name))) },
		},
		Setups: map[string]func(testing.TB) error{
			"a file in the folder's place": func(t testing.TB) error {
				file := filepath.Join(t.TempDir(), "file")
				must(t, os.WriteFile(file, nil, 0o600))
				return openError(t, "file://"+file)
			},
			"a folder that cannot be written": func(t testing.TB) error { return openError(t, "file:///proc/elector") },
			"an unknown parameter":            func(t testing.TB) error { return openError(t, "file://"+dir+"?fsync=no") },
			"a host":                          func(t testing.TB) error { return openError(t, "file://server/share") },
		},
	})
}

// opener opens handles by URL.
func opener(url string) func(testing.TB) backends.Backend {
	return func(t testing.TB) backends.Backend {
		b, err := backends.Open(t.Context(), url)
		must(t, err)
		return b
	}
}

// readOnlyOpener opens handles by URL that only read.
func readOnlyOpener(url string) func(testing.TB) backends.Backend {
	return func(t testing.TB) backends.Backend {
		b, err := backends.OpenReadOnly(t.Context(), url)
		must(t, err)
		return b
	}
}

// openError opens a handle that cannot be opened.
func openError(t testing.TB, url string) error {
	b, err := backends.Open(t.Context(), url)
	if err == nil {
		b.Close()
	}
	return err
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
