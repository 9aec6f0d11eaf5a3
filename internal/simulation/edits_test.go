package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/rule"
)

// passesOn checks that a write keeps the extensions that it must and no others,
// and that no node goes on from an edited state of its record.
func (c *checker) passesOn(n *node, before, next backends.Record) {
	if c.stopped {
		return
	}
	if critical := rule.Critical(before); critical != "" {
		c.w.broken("rec/critical", "%s's write is applied over the critical extension %q", n.name, critical)
	}
	renewal := before.Exists() && before.Attempt.Nonce == next.Attempt.Nonce
	if renewal && !n.witness.wrote(before) {
		c.w.broken("rec/edited", "%s goes on from %v, which it has not written so", n.name, brief{answer{r: before}})
	}
	if renewal {
		delete(c.edited, next.Attempt.Nonce) // the edit was undone before anybody noticed
	}
	broken, was, is := "rec/kept, rec/term", before.Extensions, next.Extensions
	switch {
	case !renewal:
		was, is = was.Class('k').Without("k_history"), is.Without("k_history")
	case next.Vacant():
		was, is = was.Class('k').Without("k_history"), without(is, "k_history", "t_bid", annex.PauseName)
	case is.Names(was): // it marks a request
		was, is = was.Without("t_request"), is.Without("t_request")
	}
	if is != was {
		c.w.broken(broken, "%s replaces the extensions %q by %q", n.name, before.Extensions, next.Extensions)
	}
}

// edit changes the record as a user with access to the store would, and
// reports whether there was something to change.
func (c *checker) edit(change func(r *backends.Record) bool) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	was := c.live
	r := was
	if c.stopped || !was.Exists() || !change(&r) || r == was {
		return false
	}
	c.w.store.Put(election, backends.Encode(election, r))
	now := c.w.record()
	c.w.history.add("store", "the record is edited: %v", brief{answer{r: now}})
	switch {
	case own(now) == own(was):
		c.roots[now.Version] = c.root(was.Version)
	case now.Vacant() != was.Vacant() || now.TTL < was.TTL:
		c.edited[was.Attempt.Nonce] = true
	}
	c.stands(now)
	return true
}

// The changes that a user makes to a record.

// empty empties the holder, or names another one.
func (d *dice) empty(r *backends.Record) bool {
	was := r.Holder
	if r.Holder = ""; d.chance(0.3) {
		r.Holder = "by hand"
	}
	return was != ""
}

// lower lowers the TTL.
func (d *dice) lower(r *backends.Record) bool {
	least, most := r.RenewEvery+r.RenewEvery/10, r.TTL-r.TTL/10
	if r.Vacant() || least >= most {
		return false // it would be no record any more
	}
	r.TTL = d.between(least, most)
	return true
}

// hasten changes the renewal interval.
func (d *dice) hasten(r *backends.Record) bool {
	r.RenewEvery = d.between(r.TTL/20, r.TTL/2)
	return !r.Vacant()
}

// scribble changes the value.
func (d *dice) scribble(r *backends.Record) bool {
	r.Value = fmt.Sprintf("by hand %x", d.next())
	return true
}

// extend adds an extension of a class, or changes it.
func (d *dice) extend(class string) func(r *backends.Record) bool {
	return func(r *backends.Record) bool {
		var err error
		r.Extensions, err = r.Extensions.With(class+string('a'+rune(d.below(3))), fmt.Sprintf("%x", d.next()))
		return err == nil
	}
}

// request leaves a word for the holder, as a well-behaved process does: in an
// extension, with a random value, so that no state of the record comes back,
// and with the attempt as it is.
func (d *dice) request(r *backends.Record) bool {
	var err error
	r.Extensions, err = r.Extensions.With("t_request", fmt.Sprintf("%x for %d", d.next(), r.Token))
	return err == nil
}

// strip removes the extensions of a class.
func strip(class string) func(r *backends.Record) bool {
	return func(r *backends.Record) bool {
		fields := map[string]string{}
		if r.Extensions != "" {
			if err := json.Unmarshal([]byte(r.Extensions), &fields); err != nil {
				return false
			}
		}
		r.Extensions = ""
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !strings.HasPrefix(name, class) {
				r.Extensions, _ = r.Extensions.With(name, fields[name])
			}
		}
		return true
	}
}

// lapsed checks what Leader or Observe tells: that no lease has lapsed whose
// record has a critical extension.
func (n *node) lapsed(l *look, token uint64) {
	c := n.w.check
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.stopped && c.critical >= 0 && int64(c.critical) <= l.served.Load() {
		c.w.broken("rec/critical", "%s is told that token %d has lapsed, and the record has a critical extension since %v", n.name, token, c.critical)
	}
}

// looking marks the context of a read that nothing is decided by.
func looking(ctx context.Context) (context.Context, *look) {
	l := &look{}
	return context.WithValue(ctx, lookKey{}, l), l
}
