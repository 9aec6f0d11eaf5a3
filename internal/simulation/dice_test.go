package simulation

import "time"

// dice are random numbers that depend on their key alone, so that a seed
// replays whatever the order in which goroutines ask.
type dice struct{ state uint64 }

func newDice(key ...uint64) *dice {
	d := &dice{0x9e3779b97f4a7c15}
	for _, k := range key {
		d.state ^= k
		d.state = d.next()
	}
	return d
}

// next is Sebastiano Vigna's splitmix64.
func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (d *dice) float() float64 { return float64(d.next()>>11) / (1 << 53) }

func (d *dice) chance(p float64) bool { return d.float() < p }

func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

func (d *dice) between(a, b time.Duration) time.Duration {
	return a + time.Duration(d.float()*float64(b-a))
}
