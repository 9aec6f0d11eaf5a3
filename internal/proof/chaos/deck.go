package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A deck deals faults as if they were cards: each one comes once before any comes again,
// so a short campaign sees them all too.
type deck struct {
	shuffle *rand.Rand
	all     []Fault
	rest    []Fault
}

func newDeck(shuffle *rand.Rand, all []Fault) *deck { return &deck{shuffle: shuffle, all: all} }

// draw returns the next fault for which the time that is left is enough; ok is false if
// there is none.
func (d *deck) draw(left, ttl time.Duration) (f Fault, ok bool) {
	if len(d.rest) == 0 {
		d.rest = slices.Clone(d.all)
		d.shuffle.Shuffle(len(d.rest), func(i, j int) { d.rest[i], d.rest[j] = d.rest[j], d.rest[i] })
	}
	for i, f := range d.rest {
		if left > time.Duration(f.takes*float64(ttl)) {
			d.rest = slices.Delete(d.rest, i, i+1)
			return f, true
		}
	}
	return f, false
}
