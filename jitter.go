package elector

import (
	"math/bits"
	"time"
)

// jitter returns how long to wait before trying to take over, so that many
// waiters who wake together do not all write. Of 8 slots each is twice as
// likely as the one before it: however many wait, few draw the earliest slot
// that anybody draws, and the others see a winner before their time comes.
// Nobody needs to know how many there are.
func (e *Elector) jitter() time.Duration {
	const slots = 8
	e.mutex.Lock()
	span := min(max(10*e.roundTrip, 5*time.Millisecond), 250*time.Millisecond)
	e.mutex.Unlock()
	ticket := uint(e.random()*(1<<slots-1)) + 1 // 1 … 255, slot i from 2^i
	slot := bits.Len(ticket) - 1
	return time.Duration((float64(slot) + e.random()) * float64(span) / slots)
}
