package simulation

import (
	"context"
	"fmt"
	"strings"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/operate"
)

// isWord reports whether a write changes an extension of the holder's record and
// nothing else: a bid, or a request to resign.
func isWord(prev, next backends.Record) bool { return prev.Exists() && next.Attempt == prev.Attempt }

// steers are the extensions by which processes steer a handover.
var steers = []string{"t_bid", "t_request"}

// without returns extensions without some.
func without(x backends.Extensions, names ...string) backends.Extensions {
	for _, name := range names {
		x = x.Without(name)
	}
	return x
}

// mayWrite checks a word that a node leaves for a leader.
func (c *checker) mayWrite(n *node, prev, next backends.Record) {
	if own(prev) != own(next) || without(prev.Extensions, steers...) != without(next.Extensions, steers...) {
		c.w.broken("rec/request", "%s, which does not lead, changes more than a word for the leader: %v to %v", n.name, brief{answer{r: prev}}, brief{answer{r: next}})
	}
	if prev.Vacant() {
		c.w.broken("rec/request", "%s writes into a record without a holder", n.name)
	}
}

// asks leaves a request to resign as another process does, now and then for
// another token, or twice.
func (d *dice) asks(r *backends.Record) bool {
	token := r.Token
	if d.chance(0.3) {
		token -= uint64(d.below(3))
	}
	q := annex.Request{Token: token, Nonce: fmt.Sprintf("%x", d.next()), By: "operator"}
	if d.chance(0.5) {
		q.To = fmt.Sprintf("n%d", d.below(7))
	}
	x, err := q.Into(r.Extensions)
	if err == nil {
		r.Extensions = x
	}
	return err == nil
}

// bids writes a bid into the record as it is.
func bids(r *backends.Record, value string) bool {
	x, err := r.Extensions.With("t_bid", value)
	if err == nil {
		r.Extensions = x
	}
	return err == nil
}

// names names a successor: a candidate that may wait, be dead or not exist.
func (d *dice) names(r *backends.Record) bool {
	rank := int64(d.below(9))
	if rank > 7 {
		rank = annex.Named
	}
	return bids(r, annex.Bid{Rank: rank, ID: fmt.Sprintf("n%d", d.below(7)), Nonce: fmt.Sprintf("%x", d.next())}.String())
}

// forges writes a bid that makes no sense.
func (d *dice) forges(r *backends.Record) bool {
	h := fmt.Sprintf("%d %x n1", annex.Named+1, d.next())
	return bids(r, []string{"", "8", "8 1 ", "-1 1 n1", "8 1 %zz", "8 1 " + strings.Repeat("x", 300), h, h + " " + h}[d.below(8)])
}

// said returns what the extensions of a record say.
func said(r backends.Record) annex.Annex { return new(annex.Reader).Of(r) }

// doubles writes the bid of the candidate that leads, or the bid that stands once more
// and with another rank.
func (d *dice) doubles(r *backends.Record) bool {
	b := said(*r).Bid
	if b.None() || d.chance(0.5) {
		b.ID = r.Holder
	}
	b.Rank, b.Nonce = int64(d.below(8)), fmt.Sprintf("%x", d.next())
	return !b.None() && bids(r, b.String())
}

// stale writes a bid that stood before, as it was: in this term or in another one.
func (x *wild) stale(r *backends.Record) bool {
	x.mutex.Lock()
	old, is := x.bid, said(*r).Bid
	if !is.None() {
		x.bid = is
	}
	x.mutex.Unlock()
	return !old.None() && old != is && bids(r, old.String())
}

// A bidKind is who should lead by a bid that a node has written.
type bidKind int

const (
	ofVolunteer bidKind = iota
	ofPriority
	ofNamed
	bidKinds
)

func (k bidKind) String() string {
	return [...]string{"bids of volunteers", "bids with a priority", "bids that a request has made"}[k]
}

// counts counts the bid of a word for the leader, which is applied.
func (c *checker) counts(next backends.Record) {
	b := said(next).Bid
	switch {
	case b.None() || b == said(c.live).Bid:
	case b.Rank == annex.Named:
		c.bids[ofNamed]++
	case b.Rank > 0:
		c.bids[ofPriority]++
	default:
		c.bids[ofVolunteer]++
	}
}

// steer calls the methods that steer a handover.
func (n *node) steer(ctx context.Context, kind faultKind, d *dice) {
	to := fmt.Sprintf("n%d", d.below(7))
	ctx, _ = looking(ctx)
	switch kind {
	case asked:
		if d.chance(0.5) {
			to = ""
		}
		token := elector.Token(0)
		if d.chance(0.3) {
			token = elector.Token(n.w.record().Token)
		}
		n.brief.Add(1)
		n.elector.Operator().RequestResign(ctx, operate.ResignRequest{Token: uint64(token), To: to})
		n.brief.Add(-1)
	case prioritySet:
		n.elector.SetPriority(d.below(8))
	case resignedTo:
		n.elector.ResignTo(ctx, to)
	}
}
