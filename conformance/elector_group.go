package conformance

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/partition"
)

// groupCases run package partition over the backend. In all of them the cohort checks that
// each partition has one owner, and that tokens grow.
var groupCases = []testCase{
	{name: "grp/members", run: groupMembers},
	{name: "grp/disorder", run: groupDisorder},
	{name: "grp/seat-deleted", raw: true, run: groupSeatDeleted},
}

// A cohort is the members of a group.
type cohort struct {
	s          *suite
	partitions int
	options    elector.Options

	mutex   sync.Mutex
	leases  map[*partition.Lease]string
	highest map[int]elector.Token
}

// A groupMember is a member, whose requests can be disturbed.
type groupMember struct {
	*partition.Group
	faults *fault.Backend
	stop   context.CancelFunc
	done   chan error
}

func (s *suite) cohort() *cohort {
	o := s.short()
	o.Logger = slog.New(slog.DiscardHandler)
	return &cohort{s: s, partitions: s.rounds(16, 6), options: o, leases: map[*partition.Lease]string{}, highest: map[int]elector.Token{}}
}

// join adds a member. One whose requests can be disturbed does not share them.
func (c *cohort) join(id string, disturbed bool) *groupMember {
	c.s.Helper()
	m := &groupMember{done: make(chan error, 1)}
	b := c.s.open()
	if disturbed {
		m.faults, b = fault.Wrap(b)
	}
	o := &partition.Options{Partitions: c.partitions, Elector: c.options}
	o.Elector.ID = id
	g, err := partition.New(b, c.s.name, o)
	c.s.must(err, "a group on the backend")
	m.Group = g
	var ctx context.Context
	ctx, m.stop = context.WithCancel(context.Background())
	go func() {
		m.done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			c.began(id, l)
			<-ctx.Done()
			return nil
		})
	}()
	c.s.Cleanup(func() {
		m.stop()
		if m.faults != nil {
			m.faults.Always(nil)
		}
		if err := c.s.close(g); err != nil {
			c.s.Errorf("Close of a group returns, without an error: %v", err)
		}
	})
	return m
}

// began checks a lease: all others on the partition are over, and had lower tokens.
func (c *cohort) began(id string, l *partition.Lease) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for other, of := range c.leases {
		if other == l {
			return // the worker is called again
		}
		if other.Partition() == l.Partition() && other.Check() == nil && l.Check() == nil {
			c.s.Errorf("each partition has one owner: %s has %v while %s has %v", id, l, of, other)
		}
	}
	if l.Token() <= c.highest[l.Partition()] {
		c.s.Errorf("each owner of a partition has a higher token than all before: %s has %v after token %d", id, l, c.highest[l.Partition()])
	}
	c.highest[l.Partition()] = l.Token()
	c.leases[l] = id
}

// shared waits until the members with these IDs own all partitions, evenly.
func (c *cohort) shared(rule string, ids ...string) {
	c.s.Helper()
	end := time.Now().Add(c.s.limit())
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		shares, sum := map[string]int{}, 0
		c.mutex.Lock()
		for l, id := range c.leases {
			if l.Check() == nil {
				shares[id]++
				sum++
			}
		}
		c.mutex.Unlock()
		even := sum == c.partitions
		for _, id := range ids {
			even = even && (shares[id] == c.partitions/len(ids) || shares[id] == (c.partitions-1)/len(ids)+1)
		}
		if even {
			return
		}
		if time.Now().After(end) {
			c.s.first.wait()
			c.s.Fatalf("%s: after %v the shares are %v", rule, c.s.limit(), shares)
		}
		<-tick.C
	}
}

// leaves makes a member leave.
func (m *groupMember) leaves(c *cohort) {
	c.s.Helper()
	m.stop()
	c.s.must(wait(c.s, m.done, "Run of a group returns after its context has ended"), "Run of a group")
}

// grp/members: members come, leave and crash, and the others share the partitions.
func groupMembers(s *suite) {
	c := s.cohort()
	a := c.join("a", false)
	c.shared("one member owns all partitions", "a")
	b := c.join("b", true)
	c.shared("a newcomer gets its share", "a", "b")
	for n := range c.partitions {
		if o, err := a.Owner(s.context(), n); err != nil || o.Waiting != "" {
			s.Errorf("the store shows the owner of each partition: of %d %+v, %v", n, o, err)
		}
	}
	c.join("c", false)
	a.leaves(c)
	c.shared("a member that leaves is replaced", "b", "c")
	b.faults.Always(fault.RequestLost)
	c.shared("a member that is cut off is replaced", "c")
	b.faults.Always(nil)
	c.shared("a member that comes back gets its share", "b", "c")
}

// grp/disorder: requests and answers are lost, late and repeated.
func groupDisorder(s *suite) {
	c := s.cohort()
	var ids []string
	for i := range 3 {
		ids = append(ids, fmt.Sprint(i))
		m := c.join(ids[i], true)
		n := 0
		m.faults.Always(func(ctx context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
			c.mutex.Lock()
			n++
			kind := n % 24
			c.mutex.Unlock()
			switch kind {
			case 3 + i:
				return fault.RequestLost(ctx, call, send)
			case 9 + i:
				return fault.ReplyLost(ctx, call, send)
			case 15 + i:
				return fault.Twice(ctx, call, send)
			}
			return send(ctx)
		})
	}
	c.shared("members share the partitions although some of their requests and answers are lost or repeated", ids...)
	last := c.join("last", false)
	c.shared("a newcomer gets its share", append(ids, "last")...)
	last.leaves(c)
	c.shared("a member that leaves is replaced", ids...)
}

// grp/seat-deleted: the record of a seat is deleted, and another process creates it. What
// was held through it is another's once its lease is over, and not before.
func groupSeatDeleted(s *suite) {
	c := s.cohort()
	a := c.join("a", true)
	c.shared("one member owns all partitions", "a")
	c.join("b", false)
	c.shared("a newcomer gets its share", "a", "b")
	a.faults.Always(fault.RequestLost) // it does not know
	s.h.Raw.Delete(s, s.name+".seat.0")
	c.join("c", false)
	c.shared("the others replace a member whose seat was deleted", "b", "c")
	a.faults.Always(nil)
	c.shared("a member whose seat was deleted takes another", "a", "b", "c")
}
