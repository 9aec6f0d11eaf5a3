package elector

import (
	"cmp"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"strconv"

	"github.com/elector-go/elector/backends"
)

// A Token is a fencing token: each acquisition of an election has a greater one
// than all before it. Send it with every write to the resource that the election
// protects, and let the resource refuse a write whose token is lower than one it
// has seen (Martin Kleppmann, "How to do distributed locking", 2016). This is the
// only defence against a leader that was paused after its last Check.
//
// Tokens are below 2^53, so that JSON readers which keep numbers as floating
// point do not round them. They are not consecutive: most are near the time of
// the acquisition in microseconds since 1970.
type Token uint64

// MaxToken is the largest token. Microseconds since 1970 reach it after the year
// 2250.
const MaxToken Token = backends.MaxToken

// TokenHeader is the name of the HTTP header that carries a token.
const TokenHeader = "Elector-Fencing-Token"

// Compare returns -1, 0 or +1 as t is lower than, equal to or higher than u.
func (t Token) Compare(u Token) int { return cmp.Compare(t, u) }

// String returns the token in decimal digits, the form that ParseToken reads.
func (t Token) String() string { return strconv.FormatUint(uint64(t), 10) }

// ParseToken reads a token in decimal digits. It returns ErrInvalid for
// anything that is not a token: 0, MaxToken+1, a sign, white space.
func ParseToken(s string) (Token, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 || n > uint64(MaxToken) || s[0] == '0' || s[0] == '+' {
		return 0, fmt.Errorf("elector: %w: %.40q is not a fencing token, a whole number from 1 to %d", ErrInvalid, s, MaxToken)
	}
	return Token(n), nil
}

// LogValue implements [log/slog.LogValuer]: a token is a number in logs.
func (t Token) LogValue() slog.Value { return slog.Uint64Value(uint64(t)) }

// MarshalText implements [encoding.TextMarshaler].
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *Token) UnmarshalText(text []byte) error {
	parsed, err := ParseToken(string(text))
	if err == nil {
		*t = parsed
	}
	return err
}

// Value implements [driver.Valuer]: a token is a BIGINT in SQL.
func (t Token) Value() (driver.Value, error) { return int64(t), nil }

// Scan implements [database/sql.Scanner].
func (t *Token) Scan(src any) error {
	switch v := src.(type) {
	case int64:
		if v <= 0 {
			return fmt.Errorf("elector: %w: %d is not a fencing token", ErrInvalid, v)
		}
		return t.UnmarshalText(strconv.AppendInt(nil, v, 10))
	case []byte:
		return t.UnmarshalText(v)
	case string:
		return t.UnmarshalText([]byte(v))
	}
	return fmt.Errorf("elector: %w: a %T is not a fencing token", ErrInvalid, src)
}
