package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/clock"
)

// A gate is a backend whose requests wait at it, each for its own answer.
type gate struct {
	backends.BatchSwapper
	backends.BatchLoader
	requests chan *passing
	deaf     bool // to contexts
}

// A passing is a request at the gate.
type passing struct {
	ctx    context.Context
	names  []string
	answer chan error // for all of them
}

func newGate() *gate {
	m := memory.New()
	return &gate{BatchSwapper: m, BatchLoader: m, requests: make(chan *passing, 1000)}
}

func (g *gate) Load(ctx context.Context, name string) (backends.Record, error) {
	return backends.Record{}, g.pass(ctx, name)
}

func (g *gate) Swap(ctx context.Context, name string, _, next backends.Record) (backends.Record, error) {
	return next, g.pass(ctx, name)
}

func (g *gate) SwapMany(ctx context.Context, changes []backends.Change) []backends.Outcome {
	var names []string
	outcomes := make([]backends.Outcome, len(changes))
	for i, c := range changes {
		names = append(names, c.Name)
		outcomes[i].Record = c.Next
	}
	if err := g.pass(ctx, names...); err != nil {
		return backends.Outcomes(len(changes), err)
	}
	return outcomes
}

func (g *gate) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return backends.Outcomes(len(names), g.pass(ctx, names...))
}

func (g *gate) Describe() backends.Description { return g.BatchSwapper.Describe() }
func (g *gate) Close() error                   { return nil }

func (g *gate) pass(ctx context.Context, names ...string) error {
	p := &passing{ctx, names, make(chan error, 1)}
	g.requests <- p
	ended := ctx.Done()
	if g.deaf {
		ended = nil
	}
	select {
	case err := <-p.answer:
		return err
	case <-ended:
		return ctx.Err()
	}
}

// arrived returns the requests that wait at the gate.
func (g *gate) arrived() (all []*passing) {
	synctest.Wait()
	for {
		select {
		case p := <-g.requests:
			all = append(all, p)
		default:
			return all
		}
	}
}

func names(all []*passing) (names [][]string) {
	for _, p := range all {
		names = append(names, p.names)
	}
	return names
}

// A scene is clients at a gate, in a bubble.
type scene struct {
	*testing.T
	gate   *gate
	active sync.WaitGroup
}

func inBubble(t *testing.T, f func(s *scene)) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{T: t, gate: newGate()}
		f(s)
		for left := s.gate.arrived(); len(left) > 0; left = s.gate.arrived() {
			for _, p := range left {
				p.answer <- nil
			}
		}
		s.active.Wait()
	})
}

func (s *scene) client() *Client { return New(s.gate, clock.System{}, &s.active) }

// swap begins a swap of a client of its own.
func (s *scene) swap(name string, a Ask) *Request { return s.swapBy(s.client(), name, a) }

func (s *scene) swapBy(c *Client, name string, a Ask) *Request {
	if a.Timeout == 0 {
		a.Timeout = time.Minute
	}
	r := c.Swap(s.Context(), name, a, 10, func() (backends.Change, bool) {
		return backends.Change{Name: name, Prev: backends.Record{Version: "1"}}, true
	})
	return r
}

// fill takes all places on the wire for requests of one name each.
func (s *scene) fill() (all []*passing) {
	for i := range wires {
		s.swap(fmt.Sprint("full", i), Ask{Alone: true})
		time.Sleep(longestHold)
	}
	if all = s.gate.arrived(); len(all) != wires {
		s.Fatalf("%d requests are on the wire, not %d", len(all), wires)
	}
	return all
}

// free answers requests, and lets those go that were held back for their places.
func (s *scene) free(some []*passing, err error) {
	for _, p := range some {
		p.answer <- err
	}
	time.Sleep(longestHold + swapWait)
}

// Each rank has its part of the wire, and what waits goes together.
func TestWires(t *testing.T) {
	inBubble(t, func(s *scene) {
		at := map[Rank]int{}
		for _, rank := range []Rank{Look, Seek, Gain, Keep} {
			for i := range 3 * wires {
				s.swap(fmt.Sprint(rank, "-", i), Ask{Rank: rank, Alone: true})
			}
			time.Sleep(time.Second)
			at[rank] += len(s.gate.arrived())
		}
		if at[Look] != 2 || at[Seek] != 2 || at[Gain] != 2 || at[Keep] != 2 {
			s.Errorf("on the wire are more and more: %v", at)
		}
	})
}

// What is most urgent goes first: leases that end soon, then acquisitions, then leases that
// have time, and of the leases those last that can hardly be in time.
func TestOrder(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.fill()
		c := s.client()
		h := c.enter()
		defer h.leave()
		h.trip = 100 * time.Millisecond
		now := clock.System{}.Now().Mono
		var waiting []*Request
		for _, r := range []struct {
			name string
			ask  Ask
		}{
			{"look", Ask{Rank: Look}},
			{"seek", Ask{Rank: Seek}},
			{"calmer", Ask{Over: now + 30*time.Second, Urgent: now + 20*time.Second}},
			{"calm", Ask{Over: now + 20*time.Second, Urgent: now + 10*time.Second}},
			{"gain", Ask{Rank: Gain}},
			{"late", Ask{Over: now + 50*time.Millisecond}},
			{"soon", Ask{Over: now + 5*time.Second}},
			{"sooner", Ask{Over: now + 3*time.Second}},
		} {
			r.ask.Alone = true
			waiting = append(waiting, s.swap(r.name, r.ask))
		}
		h.mutex.Lock()
		defer h.mutex.Unlock()
		l := &h.lines[swaps]
		l.under, h.under = 0, 0
		var went []string
		for l.waiting > 0 {
			next, rank := h.next(now)
			went = append(went, next.gather(rank, now, h.trip).requests[0].name)
		}
		l.under, h.under = wires, wires
		if want := []string{"sooner", "soon", "gain", "calm", "calmer", "late", "seek", "look"}; !slices.Equal(went, want) {
			s.Errorf("they went as %v; want %v", went, want)
		}
		for _, r := range waiting {
			r.batch.settle(r, backends.Outcome{})
			s.active.Done()
		}
	})
}

// A request that waits is not on its way: its time begins when it is sent, it is built then,
// and it can be withdrawn. What waited goes together.
func TestUnsent(t *testing.T) {
	inBubble(t, func(s *scene) {
		all := s.fill()
		built := map[string]time.Duration{}
		start := clock.System{}.Now().Mono
		var waiting []*Request
		for _, name := range []string{"a", "b", "withdrawn", "given up"} {
			waiting = append(waiting, s.client().Swap(s.Context(), name, Ask{Timeout: time.Second}, 10, func() (backends.Change, bool) {
				built[name] = clock.System{}.Now().Mono - start
				return backends.Change{Name: name}, true
			}))
		}
		time.Sleep(10 * time.Second)
		if !waiting[2].Withdraw() {
			s.Error("a request that waits is not withdrawn")
		}
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		if o, unsent := waiting[3].Wait(ctx); !unsent || !errors.Is(o.Err, context.Canceled) {
			s.Errorf("a request that waits is given up: %v, unsent %v", o.Err, unsent)
		}
		all[0].answer <- nil
		sent := s.gate.arrived()
		if got := names(sent); len(got) != 1 || !slices.Equal(got[0], []string{"a", "b"}) {
			s.Fatalf("what waited went as %v", got)
		}
		if len(built) != 2 || built["a"] != 10*time.Second {
			s.Errorf("built were %v", built)
		}
		if waiting[0].Withdraw() {
			s.Error("a request that was sent is withdrawn")
		}
		time.Sleep(time.Second - 1)
		select {
		case <-waiting[0].Done():
			s.Error("its time was over too early")
		default:
		}
		if o, unsent := waiting[0].Wait(s.Context()); unsent || !errors.Is(o.Err, backends.ErrUnavailable) {
			s.Errorf("a second after it was sent: %v, unsent %v", o.Err, unsent)
		}
	})
}

// Two swaps of one election do not go in one request: stores refuse two changes of one
// record.
func TestBatchOfOneElection(t *testing.T) {
	inBubble(t, func(s *scene) {
		all := s.fill()
		for _, name := range []string{"twice", "once", "twice"} {
			s.swap(name, Ask{})
		}
		s.free(all[:2], nil)
		if got := names(s.gate.arrived()); len(got) != 2 || len(got[0])+len(got[1]) != 3 {
			s.Errorf("they went as %v", got)
		}
	})
}

// Where a request is refused, its halves go by themselves, until the name that is the reason
// stands alone; then it goes alone until the store takes it. But a creation compares with no version: it may still be applied, and then a
// second one too, after others have led. Only its caller knows whether that may be.
func TestRefusedTogether(t *testing.T) {
	for _, what := range []string{"changes", "creations", "reads"} {
		inBubble(t, func(s *scene) {
			all := s.fill()
			var clients []*Client
			begin := func(i int) *Request {
				name, prev := fmt.Sprint(i), backends.Record{Version: "1"}
				switch what {
				case "reads":
					return clients[i].Load(s.Context(), name, Ask{Timeout: time.Minute}, func() {})
				case "creations":
					prev = backends.Record{}
				}
				return clients[i].Swap(s.Context(), name, Ask{Timeout: time.Minute}, 10, func() (backends.Change, bool) {
					return backends.Change{Name: name, Prev: prev}, true
				})
			}
			var requests []*Request
			for i := range 16 {
				clients = append(clients, s.client())
				requests = append(requests, begin(i))
			}
			s.free(all, nil)
			sizes := []int{}
			for some := s.gate.arrived(); len(some) > 0; some = s.gate.arrived() {
				for _, p := range some {
					sizes = append(sizes, len(p.names))
					var err error
					if slices.Contains(p.names, "7") && len(sizes) < 100 {
						err = backends.ErrDenied
					}
					p.answer <- err
				}
				time.Sleep(longestHold)
			}
			for i, r := range requests {
				o, _ := r.Wait(s.Context())
				if what == "creations" {
					if !errors.Is(o.Err, backends.ErrUnavailable) || backends.Permanent(o.Err) {
						s.Errorf("creation %d ends with %v", i, o.Err)
					}
				} else if (o.Err != nil) != (i == 7) {
					s.Errorf("%s: %d ends with %v", what, i, o.Err)
				}
			}
			if what == "creations" {
				if len(sizes) != 1 {
					s.Errorf("%s: requests of %v", what, sizes)
				}
				return
			}
			if len(sizes) > 9 {
				s.Errorf("%s: requests of %v", what, sizes)
			}
			for _, want := range [][][]string{{{"7"}, {"8", "9"}}, {{"7", "8", "9"}}} {
				all = s.fill()
				for i := range 3 {
					begin(7 + i)
				}
				s.free(all[:2], nil)
				again := s.gate.arrived()
				got := names(again)
				slices.SortFunc(got, slices.Compare)
				if !slices.EqualFunc(got, want, slices.Equal) {
					s.Errorf("%s: later they go as %v; want %v", what, got, want)
				}
				s.free(append(again, all[2:]...), nil)
			}
		})
	}
}

// A swap of a refused batch is not sent again if that would be too late. It ends with why it
// was refused.
func TestAskedAgain(t *testing.T) {
	inBubble(t, func(s *scene) {
		all := s.fill()
		asked := 0
		late := s.client().Swap(s.Context(), "late", Ask{Timeout: time.Minute}, 10, func() (backends.Change, bool) {
			asked++
			return backends.Change{Name: "late", Prev: backends.Record{Version: "1"}}, asked == 1
		})
		other := s.swap("other", Ask{})
		s.free(all, nil)
		s.free(s.gate.arrived(), backends.ErrDenied)
		again := s.gate.arrived()
		if got := names(again); len(got) != 1 || !slices.Equal(got[0], []string{"other"}) || asked != 2 {
			s.Errorf("again went %v, and one was asked %d times", got, asked)
		}
		s.free(again, nil)
		if o, unsent := late.Wait(s.Context()); unsent || !errors.Is(o.Err, backends.ErrDenied) {
			s.Errorf("the late one ends with %v, unsent %v", o.Err, unsent)
		}
		if o, _ := other.Wait(s.Context()); o.Err != nil {
			s.Error(o.Err)
		}
	})
}

// A creation that was sent by itself, because all others of its batch stayed behind, ends with
// the store's own refusal. And the store's failure is one of a request of one.
func TestSentAloneOfBatch(t *testing.T) {
	for _, cause := range []error{backends.ErrDenied, backends.ErrUnavailable} {
		inBubble(t, func(s *scene) {
			all := s.fill()
			l := s.client().Swapping()
			defer l.Leave()
			for _, name := range []string{"late", "late too"} {
				s.client().Swap(s.Context(), name, Ask{Timeout: time.Minute}, 10, func() (backends.Change, bool) { return backends.Change{}, false })
			}
			r := s.client().Swap(s.Context(), "creation", Ask{Timeout: time.Minute}, 10, func() (backends.Change, bool) {
				return backends.Change{Name: "creation"}, true
			})
			s.free(all[:1], nil)
			before := state(l).now
			sent := s.gate.arrived()
			if len(sent) != 1 || len(sent[0].names) != 1 {
				s.Fatalf("they went as %v", names(sent))
			}
			s.free(sent, cause)
			if o, _ := r.Wait(s.Context()); !errors.Is(o.Err, cause) {
				s.Errorf("refused by itself with %v, it ends with %v", cause, o.Err)
			}
			if now := state(l).now; now != before {
				s.Errorf("after a failure of a request of one (%v), %d may go together, not %d", cause, now, before)
			}
		})
	}
}

// A renewal that has time leaves the next place to an acquisition that waits for one, and one
// that has none does not.
func TestLeavesPlaces(t *testing.T) {
	inBubble(t, func(s *scene) {
		now := clock.System{}.Now().Mono
		for i := range Gain.share(wires) {
			s.swap(fmt.Sprint(i), Ask{Alone: true})
		}
		all := s.gate.arrived()
		release := s.swap("release", Ask{Rank: Gain, Alone: true})
		calm := s.swap("calm", Ask{Alone: true, Over: now + time.Hour, Urgent: now + time.Hour})
		if got := names(s.gate.arrived()); len(got) != 0 {
			s.Errorf("%v go before the release", got)
		}
		urgent := s.swap("urgent", Ask{Alone: true, Over: now + time.Minute})
		sent := s.gate.arrived()
		if got := names(sent); len(got) != 1 || got[0][0] != "urgent" {
			s.Errorf("%v go before the release, and not urgent alone", got)
		}
		s.free(all, nil)
		sent = append(sent, s.gate.arrived()...)
		if got := names(sent); len(got) != 3 {
			s.Errorf("with places there go %v", got)
		}
		s.free(sent, nil)
		for _, r := range []*Request{release, calm, urgent} {
			if o, _ := r.Wait(s.Context()); o.Err != nil {
				s.Error(o.Err)
			}
		}
	})
}
