package simulation

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/backends"
)

// A witness is what one Elector has been shown of the record and what it sent,
// as the network knows it and not as the elector remembers it.
type witness struct {
	mutex   sync.Mutex
	first   map[backends.Version]time.Duration // monotonic, when each state was first shown: see checker.root
	current backends.Record                    // the latest state shown
	root    backends.Version                   // its root
	last    backends.Record                    // the latest that was a record at all
	changed time.Duration                      // when a state was shown that is not the one before
	served  time.Duration                      // when the store gave the latest that was shown
	highest uint64                             // token
	nonces  map[string]int                     // acquisitions shown, after how many store faults

	sent      map[backends.Attempt]sending // our own writes
	names     map[uint64]string            // nonces of our own acquisitions by token
	mine      map[string]bool              // nonces of our own acquisitions
	confirmed map[string]moment            // by nonce: the latest write that an answer showed to be applied
	doubtful  map[string]bool              // nonces whose creation was in doubt
	told      map[string]bool              // nonces whose release was acknowledged
	unclear   string                       // nonce of the own acquisition whose latest write has failed, and is read back
	edited    map[string]time.Duration     // by nonce: when that read showed that another writer had changed the record

	heldFrom  time.Duration // monotonic, of a store fault
	heldUntil time.Duration // by guarantee 3 nothing sent after it and before this acquires,
	heldSince int           // unless another node won after this many store faults
}

// A sending is one of our own writes.
type sending struct {
	at  moment
	own backends.Record
}

// lookKey marks the contexts of reads that nothing is decided by: those of
// Leader and Observe.
type lookKey struct{}

// A look is such a call.
type look struct{ served atomic.Int64 } // when the store gave its latest answer

// own returns the fields of a record that only its holder writes.
func own(r backends.Record) backends.Record {
	r.Version, r.Extensions = "", ""
	return r
}

// asWritten reports whether a record is one that we wrote, but for extensions
// that others may add.
func (w *witness) asWritten(r backends.Record) bool {
	s, ours := w.sent[r.Attempt]
	return ours && s.own == own(r) && r.Extensions.Critical() == ""
}

// wrote is asWritten for those who do not hold the mutex.
func (w *witness) wrote(r backends.Record) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.asWritten(r)
}

// saw notes an answer or a push that reached the elector in time.
func (n *node) saw(op string, a answer) {
	n.log("%s shows %v", op, brief{a})
	if a.err != nil {
		return
	}
	r := a.r
	now, c := n.machine.moment(), n.w.check
	faults, root := c.lookup(r.Version)
	w := &n.witness
	w.mutex.Lock()
	if w.first == nil {
		w.first, w.nonces, w.confirmed = map[backends.Version]time.Duration{}, map[string]int{}, map[string]moment{}
		w.edited = map[string]time.Duration{}
	}
	older := w.older(r)
	late := a.served < w.served // it may show less than what was shown before: an elector reads again
	if older && (late || op == "push") {
		w.mutex.Unlock()
		return // an elector settles it by a read, and so do we
	}
	if _, known := w.first[root]; !known {
		w.first[root] = now.mono
		if r.Exists() && own(r) == own(w.current) {
			w.first[root] = w.first[w.root] // others changed its extensions, or it came back and nothing else was shown
		}
	}
	w.served = max(w.served, a.served)
	crossed := w.changed > a.sent && r.Attempt == w.current.Attempt // it may be from before what was shown meanwhile: an elector reads again
	if r.Version != w.current.Version {
		w.changed = n.w.now()
	}
	w.current, w.root = r, root
	if r.Exists() {
		w.last = r
		w.highest = max(w.highest, r.Token)
		nonce := r.Attempt.Nonce
		w.nonces[nonce] = faults
		switch {
		case w.asWritten(r):
			if at := w.sent[r.Attempt].at; at.boot >= w.confirmed[nonce].boot {
				w.confirmed[nonce] = at
			}
		case op == "load" && w.unclear == nonce && !older && !late && !crossed && w.edited[nonce] == 0:
			w.edited[nonce] = n.w.now()
		}
	}
	w.mutex.Unlock()
	c.sample()
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
		w.sent, w.names = map[backends.Attempt]sending{}, map[uint64]string{}
		w.mine, w.doubtful, w.told = map[string]bool{}, map[string]bool{}, map[string]bool{}
	}
	w.sent[next.Attempt], w.unclear = sending{now, own(next)}, ""
	w.names[next.Token] = next.Attempt.Nonce
	w.mine[next.Attempt.Nonce] = true
}

// shown reports whether the process was shown another node's acquisition after
// so many store faults.
func (w *witness) shown(nonce string, faults int) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	at, known := w.nonces[nonce]
	return known && at >= faults && !w.mine[nonce]
}

// won returns the latest acquisition with a token.
func (w *witness) won(token uint64) (nonce string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.names[token]
}

// since returns when the process sent the latest write of an acquisition that
// it knows to be applied.
func (w *witness) since(nonce string) (at moment, known bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	at, known = w.confirmed[nonce]
	return at, known
}

// editedAt returns when a read-back showed the holder that its record
// was changed, 0 if none did. Other reads, such as one for a bid that was late, decide
// nothing.
func (w *witness) editedAt(nonce string) time.Duration {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.edited[nonce]
}
