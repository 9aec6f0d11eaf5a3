package partition

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// reads counts the reads of a link by the kind of record.
type reads struct {
	mutex sync.Mutex
	of    map[string]int
}

func (r *reads) count(_ context.Context, name string) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.of[strings.TrimRight(name, "0123456789")]++
	return nil
}

func (r *reads) take(kind string) (n int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	n, r.of = r.of[kind], map[string]int{}
	return n
}

// A partition that names a seat which no process ever had, such as one that a person has
// written, does not make its member read all seats up to that one.
func TestSeatFarAway(t *testing.T) {
	withFleet(t, 2, func(f *fleet) {
		r := &reads{of: map[string]int{}}
		l := &singly{}
		l.on(r.count, nil)
		a := f.joinSingly("a", l, nil, 0)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		r.take("")
		time.Sleep(time.Hour)
		usual := r.take("orders.seat.")
		f.edit("orders.p.0", func(r *backends.Record) {
			r.Extensions, _ = r.Extensions.With(rule.SeatName, "9000 0123456789abcdef")
			r.Token++
			r.Attempt.Nonce = "0123456789abcdef"
		})
		time.Sleep(time.Hour)
		f.settles(time.Minute, "a")
		if n := r.take("orders.seat."); n > 2*usual {
			t.Errorf("%d reads of seats in an hour, usually %d", n, usual)
		}
		time.Sleep(time.Hour)
		if n := r.take("orders.seat."); n > 2*usual {
			t.Errorf("%d reads of seats an hour later, usually %d", n, usual)
		}
		f.ends(a)
	})
}

// A process that has given a partition up reads its record as seldom as that of others, also
// while that is of another format.
func TestReadsOfForeign(t *testing.T) {
	withFleet(t, 4, func(f *fleet) {
		r := &reads{of: map[string]int{}}
		l := &singly{}
		l.on(r.count, nil)
		a := f.joinSingly("a", l, nil, 0)
		f.settles(time.Minute, "a")
		time.Sleep(time.Minute)
		r.take("")
		time.Sleep(time.Hour)
		usual := r.take("orders.p.")
		b := f.join("b", nil)
		for n, owner := range f.settles(time.Minute, "a", "b") {
			if owner == "b" { // before a has seen that
				f.store.Put(fmt.Sprintf("orders.p.%d", n), []byte("{}"))
			}
		}
		r.take("")
		time.Sleep(time.Hour)
		if n := r.take("orders.p."); n > 2*usual {
			t.Errorf("%d reads of partitions in an hour, usually %d", n, usual)
		}
		start := time.Now()
		f.ends(b)
		if took := time.Since(start); took >= b.options.ReleaseTimeout {
			t.Errorf("its owner has left after %v", took)
		}
		f.ends(a)
	})
}

// Members that have read all seats for one behind a gap read as few as before once what
// was held through it has owners.
func TestReadsAfterGap(t *testing.T) {
	withFleet(t, 70, func(f *fleet) {
		r := &reads{of: map[string]int{}}
		var cut atomic.Bool
		ids := []string{"a", "b", "c", "d", "e", "y", "z"}
		links, all := map[string]*singly{}, map[string]*process{}
		for i, id := range ids {
			down := func() bool { return cut.Load() }
			links[id] = &singly{}
			links[id].on(func(ctx context.Context, name string) error {
				if down() {
					return backends.ErrUnavailable
				}
				if id < "d" { // a deputy
					return nil
				}
				return r.count(ctx, name)
			}, func(context.Context, string, backends.Record, backends.Record) error {
				if down() {
					return backends.ErrUnavailable
				}
				return nil
			})
			all[id] = f.joinSingly(id, links[id], nil, 0)
			f.settles(time.Minute, ids[:i+1]...)
		}
		f.ends(all["y"])
		f.settles(time.Minute, "a", "b", "c", "d", "e", "z")
		time.Sleep(time.Minute)
		r.take("")
		time.Sleep(time.Hour)
		usual := r.take("orders.seat.")
		down := func(context.Context, string) error { return backends.ErrUnavailable }
		links["z"].on(down, func(context.Context, string, backends.Record, backends.Record) error { return backends.ErrUnavailable })
		cut.Store(true)
		time.Sleep(2 * f.ttl)
		f.store.Delete("orders.seat.5")
		f.store.Delete("orders.plan")
		cut.Store(false)
		f.settles(5*time.Minute, ids[:5]...)
		time.Sleep(10 * time.Minute)
		r.take("")
		time.Sleep(time.Hour)
		if n := r.take("orders.seat."); n > usual {
			t.Errorf("%d reads of seats in an hour, %d before", n, usual)
		}
		for _, id := range ids[:5] {
			f.ends(all[id])
		}
		all["z"].stop()
		<-all["z"].done
	})
}
