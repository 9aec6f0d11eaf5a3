package groups

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

func options(t task) elector.Options {
	return elector.Options{ID: t.ID, TTL: t.TTL, Logger: slog.New(slog.DiscardHandler)}
}

// A checker is a lease.
type checker interface{ Check() error }

// works does units of work until the context ends, and none unless the lease is valid.
func works(ctx context.Context, l checker, n int, j *journal) error {
	defer j.rest(n)
	for ctx.Err() == nil {
		if err := l.Check(); err != nil {
			return err
		}
		j.unit(n)
	}
	return nil
}

// joinPartitions is a member of a group of package partition.
func joinPartitions(ctx context.Context, t task, j *journal) error {
	g, err := partition.Join(ctx, t.URL, t.Group, &partition.Options{Partitions: t.Partitions, Elector: options(t)})
	if err != nil {
		return err
	}
	err = g.Run(ctx, func(ctx context.Context, l *partition.Lease) error { return works(ctx, l, l.Partition(), j) })
	return errors.Join(err, g.Close())
}

// joinElections is a member of a group that is made of ordinary elections. Each possible
// member has an election, which it leads while it is there, and which all others observe.
// Each partition has one, for which only that member campaigns that rendezvous hashing
// gives it to, of those that are there; the others observe it, so that they can take over
// as soon as a member that crashed is gone.
func joinElections(ctx context.Context, t task, j *journal) error {
	b, err := backends.Open(ctx, t.URL)
	if err != nil {
		return err
	}
	e := &elections{task: t, backend: b, journal: j, there: map[string]bool{}, changed: make(chan struct{})}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var own, others sync.WaitGroup
	errs := make(chan error, len(t.IDs)+2*t.Partitions)
	run := func(group *sync.WaitGroup, ctx context.Context, name string, f func(context.Context, *elector.Elector) error) error {
		o := options(t)
		el, err := elector.New(b, name, &o)
		if err != nil {
			return err
		}
		group.Go(func() {
			if err := f(ctx, el); err != nil && ctx.Err() == nil {
				errs <- err
			}
			el.Close()
		})
		return nil
	}
	for _, id := range t.IDs {
		group, until, part := &others, working, func(ctx context.Context, el *elector.Elector) error { return e.observe(ctx, el, id) }
		if id == t.ID {
			group, until, part = &own, ctx, e.takePart
		}
		if err := run(group, until, t.Group+".member."+id, part); err != nil {
			return err
		}
	}
	for n := range t.Partitions {
		part := func(ctx context.Context, el *elector.Elector) error { return e.share(ctx, el, n) }
		if err := run(&others, working, fmt.Sprintf("%s.p.%d", t.Group, n), part); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
	case err = <-errs:
		return err
	}
	own.Wait() // the others know before this member gives its partitions up
	stop()
	others.Wait()
	return b.Close()
}

type elections struct {
	task
	backend backends.Backend
	journal *journal

	mutex   sync.Mutex
	there   map[string]bool // of each member that was asked for: whether it is there
	changed chan struct{}   // closed when there changes
}

func (e *elections) set(id string, there bool) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if was, known := e.there[id]; known && was == there {
		return
	}
	e.there[id] = there
	close(e.changed)
	e.changed = make(chan struct{})
}

// takePart leads the member's own election.
func (e *elections) takePart(ctx context.Context, el *elector.Elector) error {
	return el.Run(ctx, func(ctx context.Context, l *elector.Lease) error {
		e.set(e.ID, true)
		<-ctx.Done()
		if l.Check() != nil { // a member that leaves works on until the others take over
			e.set(e.ID, false)
		}
		return nil
	})
}

func (e *elections) observe(ctx context.Context, el *elector.Elector, id string) error {
	for l, err := range el.Observe(ctx) {
		if err != nil {
			return err
		}
		e.set(id, !l.Vacant())
	}
	return nil
}

// share works on a partition whenever it is this member's.
func (e *elections) share(ctx context.Context, el *elector.Elector, n int) error {
	var observing sync.WaitGroup
	defer observing.Wait()
	observing.Go(func() {
		for range el.Observe(ctx) {
		}
	})
	for ctx.Err() == nil {
		mine, changed := e.mine(n)
		if !mine {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		leading, stop := context.WithCancel(ctx)
		go func() {
			defer stop()
			for mine := true; mine && leading.Err() == nil; {
				select {
				case <-changed:
					mine, changed = e.mine(n)
				case <-leading.Done():
				}
			}
		}()
		err := el.Run(leading, func(ctx context.Context, l *elector.Lease) error {
			if err := works(ctx, l, n, e.journal); err != nil {
				return err
			}
			return nil
		})
		stop()
		if err != nil && !errors.Is(err, elector.ErrLost) && !errors.Is(err, elector.ErrResigned) && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// mine reports whether a partition is this member's, and returns what is closed when that
// may have changed. It is not before all other members were looked for.
func (e *elections) mine(n int) (bool, <-chan struct{}) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if len(e.there) < len(e.IDs) {
		return false, e.changed
	}
	return rendezvous(e.IDs, e.there, n) == e.ID, e.changed
}

// rendezvous returns the member of those that are there that a partition belongs to.
func rendezvous(ids []string, there map[string]bool, partition int) (first string) {
	var highest uint64
	for _, id := range ids {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", id, partition))
		if weight := binary.BigEndian.Uint64(sum[:]); there[id] && (first == "" || weight > highest) {
			first, highest = id, weight
		}
	}
	return first
}
