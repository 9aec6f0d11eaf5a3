package memory

import (
	"context"
	"errors"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzContent: what another program put into a store is a record or foreign.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		h := New()
		defer h.Close()
		h.store.Put(check.Election, content)
		r, err := h.Load(t.Context(), check.Election)
		taken := check.Loaded(t, check.Election, r, err)
		seen := false
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err = h.Watch(ctx, check.Election, func(w backends.Record) {
			seen = w == r
			cancel()
		})
		if seen != taken || !taken && !errors.Is(err, backends.ErrForeignRecord) {
			t.Fatalf("Load returns %+v, and Watch saw it: %v, %v", r, seen, err)
		}
	})
}

// FuzzNames: two names are two elections, and what is no name reaches none.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		h := New()
		defer h.Close()
		for i, name := range []string{a, b} {
			_, err := h.Swap(t.Context(), name, backends.Record{}, check.Good())
			var want error
			switch {
			case !check.Usable(name):
				want = backends.ErrName
			case i == 1 && a == b:
				want = backends.ErrConflict
			}
			if !errors.Is(err, want) {
				t.Fatalf("Swap of %q after %q: %v, want %v", name, a, err, want)
			}
		}
	})
}

// FuzzURL: what looks like a password in a URL never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "NAME", "", "/", "NAME/path", "NAME?wait=1", "NAME#x")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"memory"}, user, before, after, rest)
		if !ok {
			return
		}
		defer clear(stores)
		b, err := backends.Open(t.Context(), a.Text)
		a.Hides(t, err)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", a.Text, err)
			}
			return
		}
		a.Hides(t, b.Describe().Store)
		b.Close()
	})
}
