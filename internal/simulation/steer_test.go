package simulation

import (
	"context"
	"fmt"
	"strings"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// isWord reports whether a write changes an extension of the holder's record and
// nothing else: a successor, or a request to resign.
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
	to := ""
	if d.chance(0.5) {
		to = fmt.Sprintf("n%d", d.below(7))
	}
	var err error
	r.Extensions, err = r.Extensions.With("t_request", fmt.Sprintf("%d %x %s operator ", token, d.next(), to))
	return err == nil
}

// names names a successor: a candidate, one that does not exist, or nonsense.
func (d *dice) names(r *backends.Record) bool {
	rank := d.below(10)
	if rank > 7 {
		rank += annex.Named - 8 // and above what a bid can have
	}
	h := fmt.Sprintf("%d %x n%d", rank, d.next(), d.below(7))
	if d.chance(0.2) {
		h = []string{"", "8", "8 1 ", "-1 1 n1", "8 1 %zz", "8 1 " + strings.Repeat("x", 300), h + " " + h}[d.below(7)]
	}
	var err error
	r.Extensions, err = r.Extensions.With("t_bid", h)
	return err == nil
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
		n.elector.RequestResign(ctx, elector.ResignRequest{Token: token, To: to})
		n.brief.Add(-1)
	case prioritySet:
		n.elector.SetPriority(d.below(8))
	case resignedTo:
		n.elector.ResignTo(ctx, to)
	}
}
