package handover

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/child"
)

// An office is a store in this process: who asks first leads, and the others
// wait in a queue.
type office struct {
	mutex   sync.Mutex
	held    bool
	queue   []chan struct{}
	opened  int
	closed  int
	written int64
	counted []int

	asked   int           // whether a candidate leads
	loses   int           // the time that the answer is no
	delay   time.Duration // of the successor
	keeps   bool          // Resign does not release
	usurped bool          // a second one is elected at once
	fails   error         // of Resign
	lapses  bool          // Resign fails, and there is a successor all the same
	refuses error         // of Campaign, after the first
}

type fake struct {
	o *office
}

func (o *office) library() peers.Library {
	return peers.Library{Name: "fake", Store: "office", Open: func(context.Context, peers.Config) (peers.Candidate, error) {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.opened++
		return fake{o}, nil
	}}
}

func (f fake) Campaign(ctx context.Context) error {
	o := f.o
	o.mutex.Lock()
	if !o.held || o.usurped {
		o.held = true
		o.mutex.Unlock()
		return nil
	}
	if o.refuses != nil {
		o.mutex.Unlock()
		return o.refuses
	}
	turn := make(chan struct{})
	o.queue = append(o.queue, turn)
	o.mutex.Unlock()
	select {
	case <-turn:
		time.Sleep(o.delay)
		o.write()
		return nil
	case <-ctx.Done():
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.queue = slices.DeleteFunc(o.queue, func(c chan struct{}) bool { return c == turn })
		return ctx.Err()
	}
}

func (o *office) write() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.written++
}

func (f fake) Resign(context.Context) error {
	o := f.o
	o.write()
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !o.lapses && (o.fails != nil || o.keeps) {
		return o.fails
	}
	if len(o.queue) == 0 {
		o.held = false
		return nil
	}
	close(o.queue[0])
	o.queue = o.queue[1:]
	return o.fails
}

func (f fake) Close() error {
	f.o.mutex.Lock()
	defer f.o.mutex.Unlock()
	f.o.closed++
	return nil
}

func (f fake) Leads() bool {
	f.o.mutex.Lock()
	defer f.o.mutex.Unlock()
	f.o.asked++
	return f.o.asked != f.o.loses
}

func (fake) Renewal() []byte { return nil }

// waiters is one too many, as if the leader were seen too.
func (o *office) waiters(context.Context) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	n := len(o.queue) + 1
	o.counted = append(o.counted, n)
	return n, nil
}

func (o *office) field() *field {
	return &field{library: o.library(), count: o.waiters, lookOut: 1, longest: time.Minute}
}

func TestPlay(t *testing.T) {
	const waiters, rounds = 10, 4
	const late = 20 * time.Millisecond
	o := &office{delay: late}
	fresh := func() *field {
		f := o.field()
		f.written = func() int64 { o.mutex.Lock(); defer o.mutex.Unlock(); return o.written }
		return f
	}
	all, err := playAll(within(t), fresh, waiters, rounds)
	if err != nil || len(all.times) != rounds || len(all.disturbed) != 0 {
		t.Fatalf("%d rounds, disturbed by %v, error %v", len(all.times), all.disturbed, err)
	}
	for _, d := range all.times {
		if d < late {
			t.Errorf("a successor after %v, although it knew after %v only", d, late)
		}
	}
	if want := slices.Repeat([]float64{1}, rounds); !slices.Equal(all.writes, want) {
		t.Errorf("the waiters wrote %v; want %v, the release not among them", all.writes, want)
	}
	// A leader, its waiters, and a new one for each that resigned but the last.
	if want := 1 + waiters + rounds - 1; o.opened != want || o.closed != want {
		t.Errorf("%d were opened and %d closed; want %d", o.opened, o.closed, want)
	}
	full := 0
	for _, n := range o.counted {
		if n > waiters+1 {
			t.Errorf("%d waited at a time; want %d", n-1, waiters)
		}
		if n == waiters+1 {
			full++
		}
	}
	if full < rounds {
		t.Errorf("all were seen to wait %d times; want it in each of %d rounds", full, rounds)
	}
}

// Where nothing is to be seen, every round takes a poll's pause at least, and
// then some of the next one.
func TestPlayPolls(t *testing.T) {
	const rounds = 3
	const poll = 30 * time.Millisecond
	o := &office{}
	f := o.field()
	f.count, f.poll = nil, poll
	start := time.Now()
	if err := f.play(within(t), 2, 0, rounds); err != nil || len(f.times) != rounds {
		t.Fatalf("%d rounds, error %v", len(f.times), err)
	}
	least := rounds * poll
	for i := range rounds {
		least += spread(poll, i, rounds, 0)
	}
	if took := time.Since(start); took < least {
		t.Errorf("%d rounds took %v; want at least %v", rounds, took, least)
	}
}

// A peer that cannot release has its rounds all the same, as long as they are.
func TestPlayKept(t *testing.T) {
	o := &office{fails: errors.New("broken"), lapses: true}
	f := o.field()
	if err := f.play(within(t), 2, 0, 3); err != nil || len(f.times) != 3 || len(f.kept) != 3 {
		t.Errorf("%d rounds, of which %d were kept, error %v", len(f.times), len(f.kept), err)
	}
}

// A disturbed round does not count, is reported, and is repeated with candidates of
// a new election; what was measured before it counts.
func TestPlayDisturbed(t *testing.T) {
	fields := 0
	fresh := func() *field {
		fields++
		o := &office{}
		if fields == 1 {
			o.loses = 3
		}
		return o.field()
	}
	// One waiter: with more it is not known who comes next.
	all, err := playAll(within(t), fresh, 1, 4)
	if err != nil || fields != 2 || len(all.times) != 4 || len(all.disturbed) != 1 {
		t.Errorf("%d rounds in %d fields, disturbed by %v, error %v", len(all.times), fields, all.disturbed, err)
	}
	if told := again(all.disturbed); told != "; 1 disturbed rounds were made anew; of the first: round 3: candidate-3 has lost office before it could resign" {
		t.Error(told)
	}
	if told := again([]error{errors.New("gone" + child.PrintedMark + "\n\ta line")}); told != "; 1 disturbed rounds were made anew; of the first: gone" {
		t.Error(told)
	}

	fields = 0
	fresh = func() *field { fields++; return (&office{loses: 1}).field() }
	if all, err := playAll(within(t), fresh, 2, 4); err == nil || fields != mostDisturbed+1 || len(all.times) != 0 {
		t.Errorf("%d rounds in %d fields, error %v; want an end of it", len(all.times), fields, err)
	}
}

const ourModule = "github.com/elector-go/elector"

func TestPlayFails(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name   string
		office *office
		change func(*field)
		want   string
	}{
		{"ours cannot resign", &office{fails: broken}, func(f *field) { f.library.Module = ourModule }, "candidate-1 resigns: broken"},
		{"a peer cannot resign, and nobody succeeds", &office{fails: broken}, func(f *field) { f.longest = time.Millisecond }, "candidate-1 resigns: broken\nno candidate was elected within 1ms"},
		{"nobody succeeds", &office{keeps: true}, func(f *field) { f.longest = time.Millisecond }, "no candidate was elected within 1ms"},
		{"the leader lost office", &office{loses: 1}, nil, "candidate-1 has lost office before it could resign"},
		{"two lead", &office{usurped: true}, func(f *field) { f.calm = time.Minute; f.count = nil }, "candidate-2 was elected although candidate-1 has not resigned"},
		{"a waiter gives up", &office{refuses: broken}, nil, "candidate-2 campaigns: broken"},
		{"the store does not tell", &office{}, func(f *field) {
			f.count = func(context.Context) (int, error) { return 0, broken }
		}, "asking the store who waits: broken"},
	} {
		f := c.office.field()
		if c.change != nil {
			c.change(f)
		}
		err := f.play(within(t), 1, 0, 1)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(f.times) != 0 {
			t.Errorf("%s: %v, error %v; want %q", c.name, f.times, err, c.want)
		}
		if c.office.opened == 0 || c.office.opened != c.office.closed {
			t.Errorf("%s: %d were opened and %d closed", c.name, c.office.opened, c.office.closed)
		}
	}
}
