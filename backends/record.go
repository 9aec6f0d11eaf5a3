package backends

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Bounds of a record. A record outside of them is foreign: a nonsensical TTL must
// neither depose a leader at once nor keep a dead one for years.
const (
	MaxTTL   = 24 * time.Hour
	MaxToken = 1<<53 - 1 // the largest integer that JSON readers keep exact
	MaxName  = 128       // bytes
	MaxText  = 4096      // bytes of Holder or Value
	MaxNonce = 64        // bytes
)

// Validate returns ErrForeignRecord with the reason if the elector cannot have
// written r. Every backend calls Validate on what it has read (Decode does); the
// elector calls it too.
func (r Record) Validate() error {
	if err := r.check(); err != nil {
		return err
	}
	return r.Extensions.validate()
}

// check is Validate for all but the extensions.
func (r Record) check() error {
	switch {
	case r.TTL <= 0 || r.TTL > MaxTTL:
		return Foreign("its TTL %v is not between 0 and %v", r.TTL, MaxTTL)
	case r.RenewEvery <= 0 || r.RenewEvery >= r.TTL:
		return Foreign("its renewal interval %v is not between 0 and its TTL %v", r.RenewEvery, r.TTL)
	case r.Token == 0 || r.Token > MaxToken:
		return Foreign("its token %d is not between 1 and %d", r.Token, uint64(MaxToken))
	case r.Attempt.Nonce == "" || len(r.Attempt.Nonce) > MaxNonce || strings.Contains(r.Attempt.Nonce, ".") || r.Attempt.Sequence == 0:
		return Foreign("it has no attempt")
	case len(r.Holder) > MaxText || len(r.Value) > MaxText:
		return Foreign("its holder or value is longer than %d bytes", MaxText)
	case !ValidText(r.Holder) || !ValidText(r.Value) || !ValidText(r.Attempt.Nonce):
		return Foreign("its text is not UTF-8, or has a NUL")
	}
	return nil
}

// ValidText reports whether every store keeps s as it is: UTF-8 without NUL, which
// PostgreSQL does not allow in text. The same rule holds for all stores.
func ValidText(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// CheckName returns ErrName with the reason unless name can name an election
// in every store: 1 to 128 bytes of ASCII letters, digits, '.', '_' and '-',
// the first not a '.'. The same rule holds for all stores, so that a service can
// move from one to another, and no name is a path, a pattern or a quote in any
// of them.
func CheckName(name string) error {
	if name == "" {
		return nameError("it is empty")
	}
	if len(name) > MaxName {
		return nameError("it has %d bytes, more than %d", len(name), MaxName)
	}
	if name[0] == '.' {
		return nameError("%q starts with a dot", name)
	}
	for _, c := range []byte(name) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return nameError("%q has a byte other than ASCII letters, digits, '.', '_' and '-'", name)
		}
	}
	return nil
}
