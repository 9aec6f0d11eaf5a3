package conformance

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// bad/schema: a store that is set up wrongly is refused when it is opened,
// before anybody campaigns, by a typed error that says what to change.
func wrongSetup(s *suite) {
	if s.h.Setups == nil {
		s.notApplicable("the harness knows no wrong set-up of this store")
		return
	}
	for what, open := range s.h.Setups {
		s.Run(what, func(t *testing.T) {
			err := open(t)
			if err == nil {
				t.Fatal("a store that is set up wrongly must be refused when it is opened: no error")
			}
			for _, kind := range []error{backends.ErrMisconfigured, backends.ErrDenied, backends.ErrReadOnly, backends.ErrUnavailable, backends.ErrURL} {
				if errors.Is(err, kind) {
					if err.Error() == kind.Error() {
						t.Errorf("the error must say what is wrong and what to change: %v", err)
					}
					return
				}
			}
			t.Errorf("the error must be ErrMisconfigured, ErrDenied, ErrReadOnly, ErrUnavailable or ErrURL: %v", err)
		})
	}
}

// store/describe: Describe names the store for errors and logs, always in the
// same way and never with a password, and does not promise what is not there.
func describes(s *suite) {
	b := s.open()
	d := b.Describe()
	if d.Store == "" {
		s.Error("Describe must name the store: Store is empty")
	}
	if err := revealed(d.Store); err != nil {
		s.Errorf("Describe must not reveal a password: %v", err)
	}
	if d.MinTTL < 0 || d.MinTTL > backends.MaxTTL {
		s.Errorf("MinTTL is a TTL that a record may have: it is %v", d.MinTTL)
	}
	if _, watches := backends.AsWatcher(b); d.PushesRenewals && !watches {
		s.Error("PushesRenewals is about Watch, and this backend is no Watcher")
	}
	s.must(b.Close(), "Close")
	if after := b.Describe(); after != d {
		s.Errorf("Describe says the same of a backend at any time: %+v became %+v after Close", d, after)
	}
}

// revealed looks for a password without showing it.
func revealed(store string) error {
	u, err := url.Parse(store)
	if err != nil {
		return nil // its own way to name a store; nothing is known about it
	}
	if password, ok := u.User.Password(); ok && strings.Trim(password, "x*") != "" {
		return errors.New("there is one in Store, between ':' and '@'; use Redact")
	}
	for key := range u.Query() {
		if k := strings.ToLower(key); strings.Contains(k, "pass") || strings.Contains(k, "secret") {
			return fmt.Errorf("there is the parameter %q in Store; use Redact", key)
		}
	}
	return nil
}
