package asking

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) { leak.Main(m) }

// echo is a store that sends back what it gets.
func echo(t *testing.T) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() { l.Close(); serving.Wait() })
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				// Through memory: the kernel's own copying keeps pipes for the next time.
				io.Copy(struct{ io.Writer }{c}, struct{ io.Reader }{c})
			})
		}
	})
	return l.Addr().String()
}

// A fake library's candidate asks the store and waits for its answer, again and
// again. If the answer is late, it asks once more and goes on waiting. One that
// blocks answers no question meanwhile.
type fake struct {
	peers.Candidate
	conn    net.Conn
	mutex   sync.Mutex
	blocks  bool
	silent  bool // sends nothing
	running sync.WaitGroup
}

func (f *fake) Campaign(context.Context) error {
	if f.silent {
		return nil
	}
	f.running.Go(func() {
		answers := bufio.NewReader(f.conn)
		renew := func() bool {
			if f.blocks {
				f.mutex.Lock()
				defer f.mutex.Unlock()
			}
			for {
				fmt.Fprintln(f.conn, "renewal")
				f.conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
				_, err := answers.ReadString('\n')
				if !errors.Is(err, os.ErrDeadlineExceeded) {
					return err == nil
				}
			}
		}
		for renew() {
			time.Sleep(time.Millisecond)
		}
	})
	return nil
}

func (f *fake) Leads() bool {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return true
}

func (f *fake) Close() error {
	f.conn.Close()
	f.running.Wait()
	return nil
}

// withIsLeader has another question too.
type withIsLeader struct{ *fake }

func (withIsLeader) IsLeader() bool { return true }

func fakes(f func() peers.Candidate, name string) peers.Library {
	return peers.Library{Name: name, Store: stores.Etcd, Open: func(_ context.Context, c peers.Config) (peers.Candidate, error) {
		conn, err := net.Dial("tcp", c.Address)
		if err != nil {
			return nil, err
		}
		candidate := f()
		switch candidate := candidate.(type) {
		case *fake:
			candidate.conn = conn
		case withIsLeader:
			candidate.conn = conn
		}
		return candidate, nil
	}}
}

func find(figures []results.Figure, library, what string) results.Figure {
	i := slices.IndexFunc(figures, func(f results.Figure) bool { return f.Library == library && f.What == what })
	if i < 0 {
		return results.Figure{}
	}
	return figures[i]
}

// The whole measurement, with libraries of which one blocks and one does not.
func TestOnStore(t *testing.T) {
	s := &stores.Store{Kind: stores.Etcd, Address: echo(t), URL: "none"}
	ours := peers.All()[0]
	quick := fakes(func() peers.Candidate { return &fake{} }, ours.Name)
	quick.Module = ours.Module
	o := Options{TTL: 200 * time.Millisecond, Short: true, Log: t.Logf, Libraries: []peers.Library{
		quick,
		fakes(func() peers.Candidate { return &fake{blocks: true} }, "blocks"),
		fakes(func() peers.Candidate { return withIsLeader{&fake{}} }, "client-go"),
		fakes(func() peers.Candidate { return &fake{} }, "client-go/release"),
	}}
	figures, err := onStore(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{ours.Name, "blocks", "client-go", "client-go (IsLeader)"} {
		for _, what := range []string{Call, CallInNows, Allocations, HungLongest} {
			f := find(figures, library, what)
			if len(f.Values) == 0 || f.Subject != results.Check || f.Store != stores.Etcd {
				t.Errorf("%s, %s: %+v", library, what, f)
			}
		}
	}
	if f := find(figures, "blocks", HungLongest); f.Most() < 300 {
		t.Errorf("the longest call of a library that blocks took %v ms; want nearly all of 400", f.Most())
	}
	if f := find(figures, ours.Name, HungCall); len(f.Values) == 0 || len(f.Values) > 51 {
		t.Errorf("calls while the store hung: %+v", f)
	}
	if f := find(figures, ours.Name, CallInOurs); f.Values != nil {
		t.Errorf("ours is compared with itself: %+v", f)
	}
	if f := find(figures, "blocks", CallInOurs); len(f.Values) != 11 {
		t.Errorf("pairs of %v; want 11", f.Values)
	}
	if f := find(figures, "client-go/release", Call); f.Values != nil {
		t.Error("a library was measured that asks as another does")
	}
}

// A library that sends nothing shows nothing about renewals under way.
func TestNothingUnderWay(t *testing.T) {
	s := &stores.Store{Kind: stores.Etcd, Address: echo(t), URL: "none"}
	o := Options{TTL: 20 * time.Millisecond, Short: true, Log: t.Logf, Libraries: []peers.Library{
		fakes(func() peers.Candidate { return &fake{silent: true} }, "silent"),
	}}
	if _, err := onStore(t.Context(), s, o); err == nil || !strings.Contains(err.Error(), "silent on etcd: it sent nothing") {
		t.Errorf("error %v; want that it sent nothing", err)
	}
}

func TestInTurn(t *testing.T) {
	var order []int
	ask := func(i int) func() bool { return func() bool { order = append(order, i); return true } }
	calls := 0.0
	took := inTurn([]func() bool{ask(0), ask(1)}, 3, func(f func() bool) float64 { f(); calls++; return calls })
	if !slices.Equal(order, []int{0, 1, 0, 1, 0, 1}) {
		t.Errorf("asked in the order %v", order)
	}
	if got := ratios(took[1], took[0]); !slices.Equal(got, []float64{2, 4. / 3, 6. / 5}) {
		t.Errorf("ratios %v", got)
	}
}

var kept []*int

func TestAllocations(t *testing.T) {
	for want := range 3 {
		got := allocations(func() bool {
			for range want {
				kept = append(kept[:0:0], new(int)) // the slice and the number
			}
			return true
		}, 100)
		if got != float64(2*want) {
			t.Errorf("%v allocations; want %d", got, 2*want)
		}
	}
}

// A clock that only moves when it is told to.
func TestWatch(t *testing.T) {
	var at time.Duration
	w := &watch{now: func() time.Duration { return at }, sleep: func(d time.Duration) { at += d }}
	w.ask = func() bool {
		switch {
		case at == 600*time.Millisecond:
			at += 700 * time.Millisecond // and then says yes
		case at == 1700*time.Millisecond:
			at += 3 * time.Millisecond
		default:
			at += time.Microsecond
			at = at.Truncate(time.Millisecond) // so that the instants above are met
		}
		return at < 1600*time.Millisecond
	}
	w.underWay = func() bool { return at >= 500*time.Millisecond }
	w.run(2 * time.Second)
	if w.longest != 700*time.Millisecond {
		t.Errorf("longest call %v", w.longest)
	}
	if w.yes || w.lastYes != 1599*time.Millisecond {
		t.Errorf("said yes until %v, in the end %v", w.lastYes, w.yes)
	}
	if most := slices.Max(w.single); most != 7e8 || len(w.single) > 500 {
		t.Errorf("%d calls while a renewal was under way, the longest %v ns", len(w.single), most)
	}
	if len(w.allocations) != 1 {
		t.Errorf("allocations %v", w.allocations)
	}
	for _, f := range w.figures("x", "etcd", 2*time.Second, 40, 9*time.Millisecond) {
		if f.What == HungLongest && (!strings.Contains(f.Note, "until 1.6 s after") || !strings.Contains(f.Note, "empty call took 9;")) {
			t.Errorf("the note says %q", f.Note)
		}
	}
	if f := (&watch{yes: true}).figures("x", "etcd", time.Second, 40, 0); f[0].Values != nil || f[0].Note == "" || !strings.Contains(f[2].Note, "still said yes") {
		t.Errorf("%+v", f)
	}
}

func TestThin(t *testing.T) {
	if got := thin([]float64{1, 2, 3}, 3); !slices.Equal(got, []float64{1, 2, 3}) {
		t.Error(got)
	}
	if got := thin([]float64{1, 2, 9, 4, 5, 6, 7, 8, 0}, 3); !slices.Equal(got, []float64{2, 5, 7}) {
		t.Error(got)
	}
}
