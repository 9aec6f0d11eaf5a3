package conformance

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// bad/schema: opening a store that is set up wrongly fails, before any campaign,
// with an error of package backends that says what to change.
func wrongSetup(s *suite) {
	if s.h.Setups == nil {
		s.notApplicable("the harness has no Setups")
		return
	}
	for _, what := range slices.Sorted(maps.Keys(s.h.Setups)) {
		s.Run(what, func(t *testing.T) {
			s := s.part(t, s.name)
			var err error
			s.outside("opening a store that is set up wrongly returns", func() { err = s.h.Setups[what](t) })
			if err == nil {
				s.Fatal("opening a store that is set up wrongly must fail: it returned no error")
			}
			for _, kind := range []error{backends.ErrMisconfigured, backends.ErrDenied, backends.ErrReadOnly, backends.ErrUnavailable, backends.ErrURL} {
				if errors.Is(err, kind) {
					if err.Error() == kind.Error() {
						s.Errorf("the error must say what is wrong and what to change: %v", err)
					}
					return
				}
			}
			s.Errorf("the error must be ErrMisconfigured, ErrDenied, ErrReadOnly, ErrUnavailable or ErrURL: %v", err)
		})
	}
}

// store/describe: Describe names the store for errors and logs, always the same
// and never with a password, and promises only what the backend does.
func describes(s *suite) {
	b := s.open()
	d := b.Describe()
	if d.Store == "" {
		s.Error("Describe must name the store: Store is empty")
	}
	if err := revealed(d.Store); err != nil {
		s.Errorf("Describe must not show a password: %v", err)
	}
	if d.MinTTL < 0 || d.MinTTL > backends.MaxTTL {
		s.Errorf("MinTTL is between 0 and 24 h: it is %v", d.MinTTL)
	}
	if _, watches := backends.AsWatcher(b); d.PushesRenewals && !watches {
		s.Error("only a Watcher has PushesRenewals, and this backend is not a Watcher")
	}
	s.must(s.together(1, "Close returns", func(int) error { return b.Close() })[0], "Close")
	if after := b.Describe(); after != d {
		s.Errorf("Describe always returns the same: %+v became %+v after Close", d, after)
	}
}

// revealed looks for a password, and does not show it.
func revealed(store string) error {
	u, err := url.Parse(store)
	if err != nil {
		return nil // not a URL, so the suite cannot check it
	}
	if password, ok := u.User.Password(); ok && strings.Trim(password, "x*") != "" {
		return errors.New("one is in Store between ':' and '@': use backends.Redact")
	}
	for key := range u.Query() {
		if k := strings.ToLower(key); strings.Contains(k, "pass") || strings.Contains(k, "secret") {
			return fmt.Errorf("there is the parameter %q in Store; use backends.Redact", key)
		}
	}
	return nil
}
