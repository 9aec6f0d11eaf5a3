package simulation

import (
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
)

// The checker sees everything at its true time and holds all nodes to the
// guarantees, which its messages name by their numbers in the design.
type checker struct {
	w *world

	mutex     sync.Mutex
	leases    []*office
	elections int
	stopped   bool
	stray     int  // overlaps that the store's own faults excuse, see excused
	unseen    int  // overlaps by a suspend that no clock shows, see blind
	byHand    int  // overlaps because the record was edited
	beyond    bool // clocks run beyond rho: guarantee 1 is off

	live   backends.Record // what the store holds
	faults int             // of the store
	since  int             // acquisitions applied since the last of them
	last   time.Duration   // when the store took a write
	writes int             // acquisitions sent
	bids   [bidKinds]int   // applied
	pauses [2]int          // applied, and those that a candidate has waited out
	old    [][]byte        // the record's states, for rollbacks

	roots    map[backends.Version]backends.Version // see root
	edited   map[string]bool                       // acquisitions whose holder or TTL was edited
	applied  map[string]int                        // acquisitions, in their order
	order    int                                   // of the latest
	cameBack bool                                  // the live one was applied before, and lost
	again    func()                                // called when one comes back; may be nil
	critical time.Duration                         // since when the record has a critical extension, -1 if it has none
}

func newChecker(w *world) *checker {
	return &checker{w: w, roots: map[backends.Version]backends.Version{}, edited: map[string]bool{}, applied: map[string]int{}, critical: -1}
}

func (c *checker) stop() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.stopped = true
}

// sends checks a write as it leaves the node; it is on time, whatever becomes
// of it.
func (c *checker) sends(n *node, prev, next backends.Record, t trip) {
	n.log("sends %v for version %q: %v", brief{answer{r: next}}, prev.Version, t)
	now := n.machine.moment()
	if !isWord(prev, next) {
		n.witness.sends(next, now)
		n.trail.sends(prev, next, now)
	}
	c.sample()
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.stopped:
	case rule.Critical(prev) != "":
		c.w.broken("rec/critical", "%s writes over the critical extension %q", n.name, rule.Critical(prev))
	case isWord(prev, next):
		c.mayWrite(n, prev, next)
	case next.Vacant():
		c.mayRelease(n, next)
	case next.Attempt.Nonce != prev.Attempt.Nonce:
		c.writes++
		c.mayAcquire(n, prev, next, now)
	}
}

// mayAcquire checks that the node waited before it takes over.
func (c *checker) mayAcquire(n *node, prev, next backends.Record, now moment) {
	w := &n.witness
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if highest, _ := n.drew(next.Attempt.Nonce); next.Attempt.Sequence == 1 && next.Token <= highest {
		c.w.broken("guarantee 5", "%s asks for token %d after it has seen %d", n.name, next.Token, highest)
	}
	nonce := prev.Attempt.Nonce
	if p := said(prev).Pause; p != nil && !strings.HasPrefix(next.Holder, "resume by ") {
		if stood := now.mono - w.first[c.root(prev.Version)]; p.For == 0 || stood < p.For {
			c.w.broken("pause", "%s leads although it has seen a pause of %v for %v", n.name, p.For, stood)
		}
	}
	if prev.Vacant() || w.mine[nonce] && !w.doubtful[nonce] {
		return
	}
	if stood := now.mono - w.first[c.root(prev.Version)]; stood < challenge(n, prev.TTL) {
		if w.mine[nonce] {
			c.w.broken("guarantee 7", "%s retakes token %d after %v, not %v, although its creation was in doubt", n.name, prev.Token, stood, challenge(n, prev.TTL))
		}
		c.w.broken("guarantee 3", "%s takes over from %q although version %q stood for %v, not %v", n.name, prev.Holder, prev.Version, stood, challenge(n, prev.TTL))
	}
}

func challenge(n *node, ttl time.Duration) time.Duration {
	return ttl + time.Duration(float64(ttl)*rho(n)) - time.Nanosecond
}

func rho(n *node) float64 {
	if n.options.ClockDrift != 0 {
		return n.options.ClockDrift
	}
	return 0.1
}

// apply brings a write to the store and checks the tokens in its order.
func (c *checker) apply(n *node, next backends.Record, swap func() (backends.Record, error)) (backends.Record, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	before := c.w.store.Get(election)
	r, err := swap()
	n.log("store: swap to %v: %v", brief{answer{r: next}}, err)
	if err != nil {
		return r, err
	}
	if isWord(c.live, next) {
		c.counts(next)
		c.roots[r.Version] = c.root(c.live.Version)
		c.stands(r)
		return r, err
	}
	c.last = c.w.now()
	c.old = append(c.old, before)
	c.passesOn(n, c.live, next)
	if said(c.live).Pause != nil && !strings.HasPrefix(next.Holder, "resume by ") {
		c.pauses[1]++
	} else if p, paused := next.Extensions.Get(annex.PauseName); paused && p != "" {
		c.pauses[0]++
	}
	nonce := next.Attempt.Nonce
	if nonce != c.live.Attempt.Nonce {
		c.waited(n, next)
		c.since++
		if next.Token <= c.live.Token && !c.stopped {
			c.w.broken("guarantee 5", "%s wins with token %d after %d", n.name, next.Token, c.live.Token)
		}
		c.cameBack = c.applied[nonce] > 0
		c.order++
		c.applied[nonce] = c.order
		if c.cameBack && c.again != nil {
			c.again()
		}
	}
	c.stands(r)
	return r, err
}

// stands notes what the store holds now.
func (c *checker) stands(r backends.Record) {
	c.live = r
	switch {
	case rule.Critical(r) == "":
		c.critical = -1
	case c.critical < 0:
		c.critical = c.w.now()
	}
}

// waited checks that an acquisition that was applied was not sent too early
// after the record went behind its sender's back.
func (c *checker) waited(n *node, next backends.Record) {
	w := &n.witness
	w.mutex.Lock()
	defer w.mutex.Unlock()
	sent := w.sent[next.Attempt].at.mono
	if c.stopped || c.faults == 0 || w.heldSince != c.faults || c.since > 0 || sent < w.heldFrom {
		return
	}
	if sent < w.heldUntil {
		c.w.broken("guarantee 3", "%s takes over %v too early after the record it had seen vanished or went back", n.name, w.heldUntil-sent)
	}
}

// root returns the version that a state had before others than its holder
// changed its extensions: they do not make it stand for less long.
func (c *checker) root(v backends.Version) backends.Version {
	if root, ok := c.roots[v]; ok {
		return root
	}
	return v
}

// lookup returns how many faults the store has had, and the root of a version.
func (c *checker) lookup(v backends.Version) (faults int, root backends.Version) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.faults, c.root(v)
}

// spoil changes the record behind everybody's back: to an older state, or to
// nothing.
func (c *checker) spoil(content []byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	genuine := (c.faults == 0 || c.since > 0) && !c.cameBack // the record is not itself one that came back
	c.faults++
	c.since = 0
	if content == nil {
		c.w.store.Delete(election)
	} else {
		c.w.store.Put(election, content)
	}
	restored := c.w.record()
	c.w.history.add("store", "the record becomes %v behind everybody's back", brief{answer{r: restored}})
	for _, n := range c.w.all() {
		if !genuine || !n.witness.shown(c.live.Attempt.Nonce, c.faults-1) {
			continue
		}
		w := &n.witness
		w.mutex.Lock()
		if c.live.Token > restored.Token && w.last.Token > restored.Token {
			w.heldFrom, w.heldSince = n.machine.moment().mono, c.faults
			w.heldUntil = w.heldFrom + challenge(n, min(w.last.TTL, c.live.TTL)) // the node may still be shown a lowered TTL
		}
		w.mutex.Unlock()
	}
	c.stands(restored)
	for _, o := range c.leases {
		if o.lease.Remaining() > 0 {
			c.expose(o)
		}
	}
}
