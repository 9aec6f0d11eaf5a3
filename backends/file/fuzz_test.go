package file

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzContent: whatever a file in the place of a record holds, it is a record
// or foreign, and is read in bounded memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content)
	}
	h := handle(f, f.TempDir())
	path := filepath.Join(h.dir, check.Election+".json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		var r backends.Record
		var err error
		check.Bounded(t, min(len(content), readLimit), func() { r, err = h.Load(t.Context(), check.Election) })
		if check.Loaded(t, check.Election, r, err) && string(r.Version) != string(content) {
			t.Fatalf("the version %q is not the content %q", r.Version, content)
		}
	})
}

// FuzzNames: two names are two elections, each with two files of its own right
// in the directory; what is no name makes no file anywhere.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	above := f.TempDir()
	f.Fuzz(func(t *testing.T, a, b string) {
		dir := filepath.Join(above, "dir")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		h := newBackend(dir)
		var want []string
		for i, name := range []string{a, b} {
			_, err := h.Swap(t.Context(), name, backends.Record{}, check.Good())
			switch {
			case !check.Usable(name):
				if !errors.Is(err, backends.ErrName) {
					t.Fatalf("Swap of %q: %v, want ErrName", name, err)
				}
			case i == 1 && a == b:
				if !errors.Is(err, backends.ErrConflict) {
					t.Fatalf("the second Swap of %q: %v, want ErrConflict", name, err)
				}
			case err != nil:
				// On a file system that folds case the second is refused.
				if _, err := h.Load(t.Context(), name); !errors.Is(err, backends.ErrForeignRecord) {
					t.Fatalf("Swap of %q after %q: %v", name, a, err)
				}
			default:
				want = append(want, name+".json", name+".lock")
			}
		}
		slices.Sort(want)
		if got := names(t, dir); !slices.Equal(got, want) {
			t.Fatalf("%q and %q make the files %q, not %q", a, b, got, want)
		}
		if got := names(t, above); !slices.Equal(got, []string{"dir"}) {
			t.Fatalf("%q and %q leave the directory: %q", a, b, got)
		}
		check.Distinct(t, want...)
	})
}

// FuzzURL: a URL names a directory by an absolute path or is refused, and what
// looks like a password in it never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "/var/lib/x", "", "/", "localhost/a?create=false", "relative/a", "/a/../..", "/a%00b", "/a%2e%2e/%2E", "/a#b", "/a?Create=x", "/a?create=maybe")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"file"}, user, before, after, rest)
		if !ok {
			return
		}
		for _, text := range []string{a.Text, "file://" + rest, "file:" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue
			}
			dir, _, err := parse(u)
			a.Hides(t, err)
			if err != nil && !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", text, err)
			}
			if err == nil && (text == a.Text && u.User != nil || !filepath.IsAbs(filepath.Clean("/"+dir)) || filepath.Clean("/"+dir) == "/") {
				t.Fatalf("%q was taken as %q", text, dir)
			}
		}
	})
}
