package simulation

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A wire is a member's connection to the store.
type wire struct {
	m       *member
	handle  *memory.Backend
	faulty  float64 // part of the requests that meet a fault
	loses   float64 // part of the acknowledged writes that the store loses
	batches int     // how many records go in one request
	watches bool
	prompt  bool // workers do as they are told

	mutex    sync.Mutex
	isCut    bool
	requests int
	scripted []script
	unread   string // reads of records with this prefix fail
}

// A script is the trip of the next request of a kind that has a record of some name.
type script struct {
	write  bool
	prefix string
	trip   trip
}

// next scripts a trip.
func (x *wire) next(write bool, prefix string, t trip) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.scripted = append(x.scripted, script{write, prefix, t})
}

// left returns what is scripted and was not met yet.
func (x *wire) left() []script {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return slices.Clone(x.scripted)
}

// deaf makes reads of records fail whose names begin so; none if prefix is empty.
func (x *wire) deaf(prefix string) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.unread = prefix
}

// take returns the trip that is scripted for a request, if there is one.
func (x *wire) take(write bool, name string) (t trip, ok bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	if x.unread != "" && !write && strings.HasPrefix(name, x.unread) {
		return trip{mute: true, breaks: time.Millisecond}, true
	}
	for i, s := range x.scripted {
		if s.write == write && strings.HasPrefix(name, s.prefix) {
			x.scripted = slices.Delete(x.scripted, i, i+1)
			return s.trip, true
		}
	}
	return trip{}, false
}

func newWire(m *member) *wire {
	return &wire{m: m, handle: m.f.store.Handle(), batches: 100, watches: true, prompt: true}
}

// backend returns the wire as the group has it.
func (x *wire) backend() backends.Backend {
	if x.watches {
		return watchWire{x}
	}
	return x
}

func (x *wire) cut(cut bool) {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	x.isCut = cut
}

func (x *wire) broken() bool {
	x.mutex.Lock()
	defer x.mutex.Unlock()
	return x.isCut
}

// draw returns what the network does to a request.
func (x *wire) draw(write bool, name string) trip {
	f := x.m.f
	if t, ok := x.take(write, name); ok {
		f.history.add(x.m.name, "write %v of %s: %v", write, name, t)
		return t
	}
	d := newDice(f.seed, x.m.number, uint64(f.now()), hash(name), 2)
	t := trip{out: d.between(time.Millisecond/10, 2*time.Millisecond), back: d.between(time.Millisecond/10, 2*time.Millisecond)}
	if f.calm() || !d.chance(x.faulty) {
		return t
	}
	kind := d.below(9)
	if !write && (kind == 5 || kind == 6) {
		kind = 1
	}
	switch kind {
	case 0:
		t.out = d.between(0, groupTTL)
	case 1:
		t.back = d.between(0, groupTTL)
	case 2:
		t.lost = true
	case 3:
		t.mute = true
	case 4:
		t.mute, t.breaks = true, t.out+t.back
	case 5:
		t.out, t.breaks = d.between(0, 3*groupTTL), time.Millisecond // applied late
	case 6:
		t.again = d.between(1, 2*groupTTL)
	case 7:
		t.pause = d.between(0, 2*groupTTL)
	case 8:
		t.suspend = d.between(0, 2*groupTTL)
	}
	f.hit([]string{"request slow", "answer slow", "request lost", "answer lost", "answer broken off", "applied late", "applied twice", "paused before sending", "suspended before sending"}[kind], x.m)
	return t
}

func hash(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// travel takes a request to the store, and the answer back.
func travel[T any](ctx context.Context, x *wire, t trip, send func() T) (answer T, err error) {
	m := x.m.machine
	x.mutex.Lock()
	x.requests++
	x.mutex.Unlock()
	if t.pause > 0 {
		m.pause(t.pause)
	}
	if t.suspend > 0 {
		m.suspend(t.suspend)
	}
	m.runs(false)
	arrived := make(chan T, 1)
	if !t.lost && !x.broken() {
		go func() {
			time.Sleep(t.out)
			a := send()
			if t.again > 0 {
				go func() { time.Sleep(t.again); send() }()
			}
			if t.mute {
				return
			}
			time.Sleep(t.back)
			if !x.broken() {
				m.runs(false)
				arrived <- a
			}
		}()
	}
	var broken <-chan time.Time
	if t.breaks > 0 {
		broken = time.After(t.breaks)
	}
	select {
	case answer = <-arrived:
	case <-broken:
		m.runs(false)
		err = errBroken
	case <-ctx.Done():
		err = ctx.Err()
	}
	return answer, err
}

// Load implements backends.Backend.
func (x *wire) Load(ctx context.Context, name string) (backends.Record, error) {
	o := x.LoadMany(ctx, []string{name})[0]
	return o.Record, o.Err
}

// LoadMany implements backends.BatchLoader.
func (x *wire) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	outcomes, err := travel(ctx, x, x.draw(false, names[0]), func() []backends.Outcome {
		all := make([]backends.Outcome, len(names))
		for i, name := range names {
			all[i].Record, all[i].Err = x.handle.Load(context.Background(), name)
		}
		return all
	})
	if err != nil {
		return backends.Outcomes(len(names), err)
	}
	return outcomes
}

// Swap implements backends.Backend.
func (x *wire) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	o := x.SwapMany(ctx, []backends.Change{{Name: name, Prev: prev, Next: next}})[0]
	return o.Record, o.Err
}

// SwapMany implements backends.BatchSwapper. Some of many are passed over, or not answered.
func (x *wire) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	outcomes, err := travel(ctx, x, x.draw(true, changes[0].Name), func() []backends.Outcome {
		all := make([]backends.Outcome, len(changes))
		for i, c := range changes {
			d := newDice(x.m.f.seed, x.m.number, uint64(x.m.f.now()), hash(c.Name), 3)
			faulty := len(changes) > 1 && !x.m.f.calm() && d.chance(x.faulty)
			if faulty && d.chance(0.5) {
				all[i].Err = backends.ErrNotTried
				continue
			}
			all[i].Record, all[i].Err = x.write(c, d)
			if faulty {
				all[i] = backends.Outcome{Err: backends.ErrUnavailable}
			}
		}
		return all
	})
	if err != nil {
		return backends.Outcomes(len(changes), err)
	}
	return outcomes
}

// write is a write that has reached the store, which may lose it later.
func (x *wire) write(c backends.Change, d *dice) (backends.Record, error) {
	f := x.m.f
	before := f.store.Get(c.Name)
	r, err := x.handle.Swap(context.Background(), c.Name, c.Prev, c.Next)
	if c.Name == "group.plan" && founding(before) {
		f.mutex.Lock()
		f.founding = f.now()
		f.mutex.Unlock()
	}
	if err == nil && !f.calm() && d.chance(x.loses) {
		after := f.store.Get(c.Name)
		time.AfterFunc(d.between(0, groupTTL/4), func() {
			if string(f.store.Get(c.Name)) == string(after) && f.spoil(c.Name, before) {
				f.hit("write lost by the store", x.m)
			}
		})
	}
	return r, err
}

func founding(plan []byte) bool { return strings.Contains(string(plan), "founding") }

// maybeFounding reports whether a member may think that the plan is founding: then it takes
// what is missing at once.
func (f *fleet) maybeFounding() bool {
	return founding(f.store.Get("group.plan")) || f.founding > 0 && f.now() < f.founding+4*groupTTL
}

// spoil sets a record to another state, nil for none, and reports whether it did: a seat is
// spoiled once in a while only, see docs/design-partitions.md.
func (f *fleet) spoil(name string, content []byte) bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if text, ok := strings.CutPrefix(name, "group.seat."); ok {
		seat, _ := strconv.Atoi(text)
		if f.now() < f.spoiled[-1-seat] {
			return false
		}
		f.spoiled[-1-seat] = f.now() + 4*groupTTL
	}
	if text, ok := strings.CutPrefix(name, "group.p."); ok {
		n, _ := strconv.Atoi(text)
		f.wiped[n] = true
		switch {
		case content != nil:
			f.spoiled[n] = max(f.spoiled[n], f.now()+auditBound())
		case f.maybeFounding():
			f.shared[n] = f.now() + auditBound()
		}
	}
	f.history.add("store", "%s is now %.200s", name, content)
	if content == nil {
		f.store.Delete(name)
	} else {
		f.store.Put(name, content)
	}
	return true
}

// Describe implements backends.Backend.
func (x *wire) Describe() backends.Description {
	return backends.Description{Store: "simulated://", MaxSwaps: x.batches, MaxLoads: x.batches}
}

// Close implements backends.Backend.
func (x *wire) Close() error { return nil }

// A watchWire is a wire to a store that pushes.
type watchWire struct{ *wire }

// Watch implements backends.Watcher.
func (x watchWire) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := newDice(x.m.f.seed, x.m.number, uint64(x.m.f.now()), 4)
	if x.faulty > 0 {
		defer time.AfterFunc(d.between(groupTTL, 20*groupTTL), cancel).Stop()
	}
	err := x.handle.Watch(ctx, name, func(r backends.Record) {
		if !x.broken() && !x.m.machine.stopped() {
			changed(r)
		}
	})
	if err == nil || ctx.Err() != nil {
		err = backends.ErrUnavailable
	}
	return err
}
