package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/partition"
)

// partitions is how many a group has: each candidate owns some.
const partitions = 8

// A group is what a round has whose candidates are members of a group. Each partition
// is an election for the checker.
type group struct {
	*Round
	partitions int
	asked      *partition.Group    // for what the campaign itself wants to know
	states     map[string][][]byte // of each record, those that may be put back, in their order
	seat       time.Time           // when a seat was changed by hand last
}

func newGroup(r *Round, partitions int) *group {
	return &group{Round: r, partitions: partitions, states: map[string][][]byte{}}
}

func (g *group) plan() string           { return g.name + ".plan" }
func (g *group) seatName(i int) string  { return fmt.Sprintf("%s.seat.%d", g.name, i) }
func (g *group) partition(n int) string { return fmt.Sprintf("%s.p.%d", g.name, n) }

// records are the names of the group's records. One process more than usual may hold a
// seat, for a moment.
func (g *group) records() []string {
	names := []string{g.plan()}
	for i := range 2 * candidates {
		names = append(names, g.seatName(i))
	}
	for n := range g.partitions {
		names = append(names, g.partition(n))
	}
	return names
}

// offices returns the partitions.
func (g *group) offices() (all []history.Election) {
	rules := history.RulesOfGroup(g.place.Rules.TTL, g.place.Rules.Renew, auditTTLs).On(g.place.hosts())
	for n := range g.partitions {
		all = append(all, history.Election{Store: g.place.Name, Name: g.partition(n), Group: g.name, Rules: rules})
	}
	return all
}

func (g *group) rules() history.Rules { return g.Round.offices[0].Rules }

func (g *group) join(ctx context.Context, url string, o elector.Options) (err error) {
	g.asked, err = partition.Join(ctx, url, g.name, &partition.Options{Partitions: g.partitions, Elector: o})
	return err
}

func (g *group) close() error {
	if g.asked == nil {
		return nil
	}
	return g.asked.Close()
}

// settled reports whether the records show an owner of each partition, which writes.
func (g *group) settled(ctx context.Context) (bool, error) {
	position := g.log.Position()
	owners := map[string]partition.Owner{}
	for n := range g.partitions {
		var o partition.Owner
		if err := insist(ctx, func() (err error) { o, err = g.asked.Owner(ctx, n); return err }); err != nil {
			return false, err
		}
		if o.ID == "" {
			return false, g.pause(ctx)
		}
		owners[g.partition(n)] = o
	}
	if founded, err := g.founded(ctx); !founded || err != nil {
		return false, errors.Join(err, g.pause(ctx))
	}
	limited, cancel := context.WithTimeout(ctx, g.rules().TTL)
	defer cancel()
	begun, written := map[string]uint64{}, map[string]bool{}
	_, err := g.log.Wait(limited, position, "writes of all owners", func(e history.Event) bool {
		o, of := owners[e.Election]
		switch own := of && e.Candidate == o.ID && e.Token == o.Token; {
		case own && e.Kind == history.Writing:
			begun[e.Election] = e.Number
		case own && e.Kind == history.Wrote && e.Number == begun[e.Election]:
			written[e.Election] = true
		}
		return len(written) == g.partitions
	})
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	return err == nil, nil
}

// founded reports whether by the plan all partitions have a record. Where
// nothing can be changed by hand that makes no difference.
func (g *group) founded(ctx context.Context) (founded bool, err error) {
	if g.place.records == nil {
		return true, nil
	}
	x, err := g.record(ctx, g.plan())
	return strings.Contains(x.Value, settledPlan), err
}

// record reads a record; its token is 0 if there is none.
func (g *group) record(ctx context.Context, name string) (x backends.Record, err error) {
	err = insist(ctx, func() error {
		content, err := g.place.records.Get(ctx, name)
		if err != nil || content == nil {
			return err
		}
		x, err = g.place.records.Decode(name, content)
		return err
	})
	return x, err
}

// settledPlan is in the text of a plan that is not founding.
const settledPlan = " settled "

func (g *group) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(50 * time.Millisecond):
		return nil
	}
}

// remember keeps the present states of the records, to put them back some time.
func (g *group) remember(ctx context.Context) error {
	for _, name := range g.records() {
		var content []byte
		if err := insist(ctx, func() (err error) { content, err = g.place.records.Get(ctx, name); return err }); err != nil {
			return err
		}
		if name == g.plan() && !bytes.Contains(content, []byte(settledPlan)) {
			continue // a founding plan that is put back says what is not so
		}
		if n := len(g.states[name]); content != nil && (n == 0 || !slices.Equal(g.states[name][n-1], content)) {
			g.states[name] = append(g.states[name], content)
		}
	}
	return nil
}
