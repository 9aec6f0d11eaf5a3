package simulation

import (
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// A witness is what one process has been shown of the record and what it sent,
// as the network knows it and not as the elector remembers it.
type witness struct {
	mutex   sync.Mutex
	first   map[backends.Version]time.Duration // monotonic, when each version was first shown
	last    backends.Record                    // the latest that was a record at all
	highest uint64                             // token
	nonces  map[string]int                     // acquisitions shown, after how many store faults

	sent      map[backends.Attempt]moment // our own writes
	names     map[uint64]string           // nonces of our own acquisitions by token
	confirmed map[string]moment           // by nonce: the latest write that an answer showed to be applied

	heldFrom  time.Duration // monotonic, of a store fault
	heldUntil time.Duration // by guarantee 3 nothing sent after it and before this acquires,
	heldSince int           // unless somebody else won after this many store faults
}

// saw notes an answer or a push that reached the elector in time.
func (n *node) saw(op string, a answer) {
	n.log("%s shows %v", op, brief{a})
	if a.err != nil {
		return
	}
	r := a.r
	now, faults := n.machine.moment(), n.w.check.storeFaults()
	w := &n.witness
	w.mutex.Lock()
	if w.first == nil {
		w.first, w.nonces, w.confirmed = map[backends.Version]time.Duration{}, map[string]int{}, map[string]moment{}
	}
	if op == "push" && w.older(r) {
		w.mutex.Unlock()
		return // an elector settles it by a read, and so do we
	}
	if _, known := w.first[r.Version]; !known {
		w.first[r.Version] = now.mono
	}
	if r.Exists() {
		w.last = r
		w.highest = max(w.highest, r.Token)
		w.nonces[r.Attempt.Nonce] = faults
		if at, ours := w.sent[r.Attempt]; ours && at.boot >= w.confirmed[r.Attempt.Nonce].boot {
			w.confirmed[r.Attempt.Nonce] = at
		}
	}
	w.mutex.Unlock()
	n.w.check.sample()
}

// older reports whether r is an earlier state than the last one shown, or none.
func (w *witness) older(r backends.Record) bool {
	a, b := r.Attempt, w.last.Attempt
	return !r.Exists() || r.Token < w.last.Token || a.Nonce == b.Nonce && a.Sequence < b.Sequence
}

// sends notes a write that leaves the elector now.
func (w *witness) sends(next backends.Record, now moment) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.sent == nil {
		w.sent, w.names = map[backends.Attempt]moment{}, map[uint64]string{}
	}
	w.sent[next.Attempt] = now
	w.names[next.Token] = next.Attempt.Nonce
}

// shown reports whether the process was shown somebody else's acquisition after
// so many store faults.
func (w *witness) shown(nonce string, faults int) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, own := range w.names {
		if own == nonce {
			return false
		}
	}
	at, known := w.nonces[nonce]
	return known && at >= faults
}

// since returns when the process sent the latest write of a lease that it knows
// to be applied.
func (w *witness) since(token uint64) (nonce string, at moment, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	nonce = w.names[token]
	at, known = w.confirmed[nonce]
	return nonce, at, known
}
