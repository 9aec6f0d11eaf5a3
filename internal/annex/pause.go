package annex

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elector-go/elector/backends"
)

// PauseName is the extension of a vacancy in which no candidate leads. It is critical, so
// that a version that does not know it does not lead either.
const PauseName = "c_pause"

// The bounds of a pause.
const (
	MaxReason = 256                  // bytes
	MaxPause  = 366 * 24 * time.Hour // one without an end has none
)

// A Pause keeps all candidates from leading.
type Pause struct {
	For    time.Duration // from when a candidate has seen the vacancy; 0 until it is resumed
	By     string        // ID of the process that has paused, as Legible returns it
	Reason string
}

// Check returns an error unless a record can have the pause.
func (p Pause) Check() error {
	switch {
	case len(p.Reason) > MaxReason:
		return fmt.Errorf("the reason has %d bytes; a pause may have %d", len(p.Reason), MaxReason)
	case !backends.ValidText(p.Reason):
		return errors.New("the reason is not UTF-8, or has a NUL byte")
	case p.For < 0 || p.For > MaxPause:
		return fmt.Errorf("the time is %v, not between 0 and %v", p.For, MaxPause)
	case p.For > 0 && p.For < time.Millisecond:
		return fmt.Errorf("the time is %v, below 1ms", p.For)
	}
	return nil
}

// String returns the value of the extension.
func (p Pause) String() string {
	return Join(strconv.FormatInt(p.For.Milliseconds(), 10), Legible(p.By), p.Reason)
}

// Into returns x with the pause.
func (p Pause) Into(x backends.Extensions) (backends.Extensions, error) {
	return x.With(PauseName, p.String())
}

// pauseOf returns the pause that a vacancy has, nil if it has none. A text that makes no
// sense is a pause without an end: no candidate leads on a guess.
func pauseOf(r backends.Record) *Pause {
	value, ok := r.Extensions.Get(PauseName)
	if !ok || !r.Vacant() {
		return nil
	}
	f := Split(value, 3)
	ms, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || ms < 0 || ms > MaxPause.Milliseconds() {
		return &Pause{Reason: "the mark of the pause cannot be read: " + Legible(value)}
	}
	return &Pause{time.Duration(ms) * time.Millisecond, Legible(f[1]), f[2]}
}
