package elector_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/inject"
	"github.com/elector-go/elector/operate"
)

// A desk counts what is read through it. Its store has no Watch.
type desk struct {
	backends.BatchLoader
	most int // MaxLoads

	mutex sync.Mutex
	took  time.Duration // each read
	sizes []int         // of requests that read
	times []time.Time   // of these
	many  func(ctx context.Context, names []string, load func() []backends.Outcome) []backends.Outcome
	fails error // of all requests
	write func(n int) error
	reads map[string]int // by themselves, by name
	count int            // of writes
}

func newDesk(b backends.BatchLoader) *desk {
	return &desk{BatchLoader: b, most: 100, took: time.Millisecond, reads: map[string]int{}}
}

func (d *desk) Describe() backends.Description {
	return backends.Description{Store: "desk://", MaxLoads: d.most}
}

func (d *desk) Load(ctx context.Context, name string) (backends.Record, error) {
	fails := d.serves(1)
	d.set(func() { d.reads[name]++ })
	if fails != nil {
		return backends.Record{}, fails
	}
	return d.BatchLoader.Load(ctx, name)
}

func (d *desk) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if fails := d.serves(len(names)); fails != nil {
		return backends.Outcomes(len(names), fails)
	}
	load := func() []backends.Outcome { return d.BatchLoader.LoadMany(ctx, names) }
	d.mutex.Lock()
	many := d.many
	d.mutex.Unlock()
	if many != nil {
		return many(ctx, names, load)
	}
	return load()
}

func (d *desk) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	d.mutex.Lock()
	d.count++
	write, n := d.write, d.count
	d.mutex.Unlock()
	if write != nil {
		if err := write(n); err != nil {
			return backends.Record{}, err
		}
	}
	return d.BatchLoader.Swap(ctx, name, prev, next)
}

func (d *desk) serves(n int) error {
	d.mutex.Lock()
	d.sizes, d.times = append(d.sizes, n), append(d.times, time.Now())
	fails, took := d.fails, d.took
	d.mutex.Unlock()
	time.Sleep(took)
	return fails
}

// alone returns how often a record was read by itself.
func (d *desk) alone(name string) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.reads[name]
}

func (d *desk) taken() (sizes []int) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	sizes, d.sizes = d.sizes, nil
	return sizes
}

func (d *desk) set(change func()) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	change()
}

// unshared hides that the desk is a BatchLoader.
type unshared struct{ backends.Backend }

// An audience is candidates of one process that wait, each for an election that a
// leader in another process holds.
type audience struct {
	*desk
	store   *memory.Store
	theirs  *mortal
	leaders []*elector.Lease
	won     []<-chan *elector.Lease
}

// attend makes n candidates wait through a backend on a desk. The leaders renew so
// long after each other.
func attend(t *testing.T, n int, apart time.Duration, through func(*desk) backends.Backend) *audience {
	t.Helper()
	a := &audience{store: memory.NewStore()}
	a.desk = newDesk(a.store.Handle())
	b := through(a.desk)
	a.theirs = &mortal{Backend: a.store.Handle()}
	for i := range n {
		name := fmt.Sprintf("election-%d", i)
		leader := governor(t, a.theirs, name, elector.Options{Trace: trouble})
		t.Cleanup(func() { leader.Close() })
		a.leaders = append(a.leaders, win(t, leader))
		e := waiter(t, b, name)
		a.won = append(a.won, begin(func() *elector.Lease {
			l, _ := e.Campaign(t.Context())
			return l
		}))
		time.Sleep(apart)
	}
	pass(4 * batchEvery) // until all know when to read
	a.taken()
	return a
}

func waiter(t *testing.T, b backends.Backend, name string) *elector.Elector {
	t.Helper()
	e, err := elector.New(b, name, &elector.Options{TTL: batchTTL, RenewEvery: batchEvery, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// asLoader and asBackend are ways to read through a desk.
func asLoader(d *desk) backends.Backend  { return d }
func asBackend(d *desk) backends.Backend { return unshared{d} }

// crash stops the leaders, and returns how long it takes until all that wait have won.
func (a *audience) crash(t *testing.T) (took time.Duration) {
	t.Helper()
	a.theirs.crashed.Store(true)
	start := time.Now()
	for _, won := range a.won {
		if wait(t, won, "a campaign ends") == nil {
			t.Error("a campaign has failed")
		}
	}
	return time.Since(start)
}

// A mortal backend takes no writes once its process has crashed.
type mortal struct {
	backends.Backend
	crashed atomic.Bool
}

func (m *mortal) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if m.crashed.Load() {
		return backends.Record{}, backends.ErrUnavailable
	}
	return m.Backend.Swap(ctx, name, prev, next)
}

// Waiters of a process read at common points of time, each about once in an
// interval, and win as soon as by themselves.
func TestReadsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, intervals = 150, 10
		a := attend(t, n, batchEvery/n, asLoader)
		start := time.Now()
		pass(intervals * batchEvery)
		sizes := a.taken()
		points := int(time.Since(start) / (50 * time.Millisecond))
		if each := float64(sum(sizes)) / n / intervals; each < 0.9 || each > 2 || len(sizes) > points+5 || slices.Max(sizes) > a.most {
			t.Errorf("in %d intervals of %d points each read %.2f times in an interval, in %d requests of at most %d", intervals, points, each, len(sizes), slices.Max(sizes))
		}
		if took := a.crash(t); took > batchTTL*12/10 {
			t.Errorf("all have taken over after %v", took)
		}
	})
}

// Many waiters read in as few requests as these can carry.
func TestReadsInBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, intervals, most = 300, 3, 2
		a := attend(t, n, batchEvery/n, func(d *desk) backends.Backend { d.most = most; return d })
		pass(intervals * batchEvery)
		sizes := a.taken()
		points := intervals * int(batchEvery/(50*time.Millisecond))
		if slices.Max(sizes) != most || len(sizes) > points+sum(sizes)/most {
			t.Errorf("%d reads at %d points took %d requests of at most %d: %d may go together", sum(sizes), points, len(sizes), slices.Max(sizes), most)
		}
	})
}

// leave makes each call that reads with others, and lets it end.
func leave(t *testing.T, b backends.Backend) {
	t.Helper()
	o := &elector.Options{TTL: batchTTL, Logger: slog.New(slog.DiscardHandler)}
	var both [2]*elector.Elector
	for i := range both {
		var err error
		if both[i], err = elector.New(b, "left", o); err != nil {
			t.Fatal(err)
		}
		defer both[i].Close()
	}
	if _, err := both[0].TryCampaign(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range both[0].Observe(t.Context()) {
		break
	}
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if l, err := both[1].Campaign(soon); err == nil {
		t.Errorf("two lead: %v", l)
	}
	soon, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := both[1].Operator().RequestResign(soon, operate.ResignRequest{}); err == nil {
		t.Error("a request is met at once")
	}
}

// One waiter reads at the very times at which it would with a backend that reads one
// record at a time, also when others have left.
func TestReadsAlone(t *testing.T) {
	times := map[bool][]time.Duration{}
	for shared := range map[bool]bool{true: true, false: true} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.NewStore()
			d := newDesk(store.Handle())
			b := asLoader(d)
			if !shared {
				b = asBackend(d)
			}
			o := &elector.Options{TTL: batchTTL, RenewEvery: batchEvery, Logger: slog.New(slog.DiscardHandler)}
			e, err := elector.New(inject.Backend{Backend: b, Random: func() uint64 { return 1 << 61 }}, "alone", o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			leader := governor(t, unshared{store.Handle()}, "alone", elector.Options{})
			defer leader.Close()
			lease := win(t, leader)
			leave(t, b)
			d.set(func() { d.times = nil })
			start := time.Now()
			won := campaign(t, e)
			pass(20*batchEvery + time.Second)
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			wait(t, won, "the waiter leads")
			for _, at := range d.times {
				times[shared] = append(times[shared], at.Sub(start))
			}
		})
	}
	if !slices.Equal(times[true], times[false]) || len(times[true]) < 20 {
		t.Errorf("it reads at\n%v, and by itself at\n%v", times[true], times[false])
	}
}

// Candidates that begin together read together.
func TestFirstReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(memory.New())
		const n = 1000
		ready := make(chan struct{})
		var all sync.WaitGroup
		for i := range n {
			e := waiter(t, d, fmt.Sprintf("election-%d", i))
			all.Go(func() {
				<-ready
				if _, err := e.TryCampaign(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		close(ready)
		all.Wait()
		if sizes := d.taken(); sum(sizes) != n || len(sizes) > n/d.most+2 {
			t.Errorf("%d candidates read in requests of %v", n, sizes)
		}
	})
}

// A read that is due while others are on their way is a request of its own: what
// those show may be older.
func TestReadsOnTheirWay(t *testing.T) {
	t.Run("apart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(memory.New())
			under, release := make(chan []string, 9), make(chan struct{})
			d.many = func(_ context.Context, names []string, load func() []backends.Outcome) []backends.Outcome {
				outcomes := load()
				under <- names
				<-release
				return outcomes
			}
			a, b, c := waiter(t, d, "a"), waiter(t, d, "b"), waiter(t, d, "c")
			d.set(func() { d.took = time.Second })
			blocker := begin(func() error { _, err := waiter(t, d, "blocker").TryCampaign(t.Context()); return err })
			pass(time.Millisecond)
			d.set(func() { d.took = 0 })
			first, second := begin(func() error { _, err := a.TryCampaign(t.Context()); return err }), begin(func() error { _, err := b.TryCampaign(t.Context()); return err })
			if names := wait(t, under, "two read together"); len(names) != 2 {
				t.Fatalf("%v are read", names)
			}
			// c has no record in the answer that is on its way, and has one by now.
			r := backends.Record{Holder: "other", Token: 1, TTL: time.Hour, RenewEvery: time.Minute, Attempt: backends.Attempt{Nonce: "other", Sequence: 1}}
			if _, err := d.BatchLoader.Swap(t.Context(), "c", backends.Record{}, r); err != nil {
				t.Fatal(err)
			}
			third := begin(func() error { _, err := c.TryCampaign(t.Context()); return err })
			pass(100 * time.Millisecond)
			select {
			case err := <-third:
				if err == nil || err.Error() != `elector: campaign "c" on desk://: `+elector.ErrHeld.Error()+` by "other" with token 1` {
					t.Errorf("the third one: %v", err)
				}
			default:
				t.Error("the third one waits for an answer that is no answer to it")
			}
			close(release)
			for _, done := range []<-chan error{first, second, blocker} {
				if err := wait(t, done, "the others have campaigned"); err != nil {
					t.Error(err)
				}
			}
		})
	})
}

// Each of those who read together has its own outcome.
func TestReadsSpoilt(t *testing.T) {
	t.Run("one is foreign", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a := attend(t, 50, 0, asLoader)
			a.store.Put("election-7", []byte("foreign"))
			errs := make(chan error, 1)
			e := waiter(t, a.desk, "election-7")
			go func() { _, err := e.Campaign(t.Context()); errs <- err }()
			if err := wait(t, errs, "the campaign in a foreign record ends"); err == nil {
				t.Error("a foreign record is won")
			}
			a.won = slices.Delete(a.won, 7, 8)
			if took := a.crash(t); took > batchTTL*12/10 {
				t.Errorf("all others have taken over after %v", took)
			}
		})
	})
	for name, many := range map[string]func(ctx context.Context, names []string, load func() []backends.Outcome) []backends.Outcome{
		"denied": func(_ context.Context, names []string, _ func() []backends.Outcome) []backends.Outcome {
			return backends.Outcomes(len(names), backends.ErrDenied)
		},
		"not tried": func(_ context.Context, names []string, _ func() []backends.Outcome) []backends.Outcome {
			return backends.Outcomes(len(names), backends.ErrNotTried)
		},
		"unavailable": func(_ context.Context, names []string, _ func() []backends.Outcome) []backends.Outcome {
			return backends.Outcomes(len(names), backends.ErrUnavailable)
		},
		"hanging": func(ctx context.Context, names []string, _ func() []backends.Outcome) []backends.Outcome {
			<-ctx.Done()
			return backends.Outcomes(len(names), ctx.Err())
		},
		"half unavailable": func(_ context.Context, names []string, load func() []backends.Outcome) []backends.Outcome {
			return append(load()[:len(names)/2], backends.Outcomes(len(names)-len(names)/2, backends.ErrUnavailable)...)
		},
		"left out": func(_ context.Context, names []string, load func() []backends.Outcome) []backends.Outcome {
			return load()[1:]
		},
	} {
		t.Run("requests for many are "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := attend(t, 200, 0, asLoader)
				a.set(func() { a.many = many; clear(a.reads) })
				const intervals = 10
				pass(intervals * batchEvery)
				for i := range a.won {
					if n := a.alone(fmt.Sprintf("election-%d", i)); n < intervals/2 && name != "half unavailable" {
						t.Errorf("waiter %d has read %d times by itself in %d intervals", i, n, intervals)
					}
				}
				for i, won := range a.won {
					select {
					case l := <-won:
						t.Fatalf("waiter %d has %v", i, l)
					default:
					}
				}
				allValid(t, a.leaders)
				if name == "denied" { // which ends a candidate that was never answered, if it holds for one
					ctx, cancel := context.WithTimeout(t.Context(), batchEvery)
					var all sync.WaitGroup
					for i := range 20 {
						e := waiter(t, a.desk, fmt.Sprintf("election-%d", i))
						all.Go(func() {
							if _, err := e.Campaign(ctx); !errors.Is(err, elector.ErrHeld) {
								t.Errorf("a newcomer among many whose requests are refused: %v", err)
							}
						})
					}
					all.Wait()
					cancel()
				}
				// A waiter that goes by itself after each failure is late by an
				// interval at most.
				if took := a.crash(t); took > batchTTL*11/10+2*batchEvery {
					t.Errorf("all have taken over after %v", took)
				}
			})
		})
	}
}

// A store that is down gets no more requests from those who read together than from
// those who read one by one, but for what the random pauses differ by.
func TestReadsStoreDown(t *testing.T) {
	requests := map[bool]int{}
	for shared := range map[bool]bool{true: true, false: true} {
		synctest.Test(t, func(t *testing.T) {
			through := asBackend
			if shared {
				through = asLoader
			}
			a := attend(t, 100, 0, through)
			a.set(func() { a.fails = backends.ErrUnavailable })
			a.taken()
			pass(10 * batchEvery)
			requests[shared] = len(a.taken())
			a.set(func() { a.fails = nil })
			a.crash(t)
		})
	}
	if requests[true] > requests[false]*21/20 || requests[true] == 0 {
		t.Errorf("%d requests together, %d one by one", requests[true], requests[false])
	}
}

// A backend that ignores its contexts keeps a bounded number of reads.
func TestReadsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		a := attend(t, n, 0, asLoader)
		deaf := make(chan struct{})
		a.set(func() {
			a.many = func(_ context.Context, names []string, _ func() []backends.Outcome) []backends.Outcome {
				<-deaf
				return backends.Outcomes(len(names), backends.ErrUnavailable)
			}
		})
		pass(5 * batchTTL)
		together := slices.DeleteFunc(a.taken(), func(n int) bool { return n == 1 })
		atOnce := int(batchEvery / 2 / (50 * time.Millisecond)) // until the first is given up
		if len(together) == 0 || len(together) > mostUnanswered+n/a.most+atOnce {
			t.Errorf("%d requests for many hang", len(together))
		}
		if took := a.crash(t); took > batchTTL*11/10+2*batchEvery {
			t.Errorf("all have taken over after %v, while requests for many hang", took)
		}
		close(deaf)
	})
}

// The read-back of a write whose outcome is unknown is a request of its own, whatever is
// read at the same time.
func TestReadBacks(t *testing.T) {
	for name, story := range map[string]func(t *testing.T, e *elector.Elector, written <-chan bool){
		"of an acquisition": func(t *testing.T, e *elector.Elector, _ <-chan bool) { win(t, e) },
		"of a renewal": func(t *testing.T, e *elector.Elector, _ <-chan bool) {
			win(t, e)
			pass(5 * batchEvery)
		},
		"of a release": func(t *testing.T, e *elector.Elector, _ <-chan bool) {
			if err := win(t, e).Release(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"of a campaign that was cancelled": func(t *testing.T, e *elector.Elector, written <-chan bool) {
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-written; cancel() }()
			if _, err := e.Campaign(ctx); err == nil {
				t.Error("a campaign that was cancelled has won")
			}
			e.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := attend(t, 20, 0, asLoader)
				e := waiter(t, a.desk, "doubtful")
				inDoubt, seen := false, make(chan bool, 1000)
				a.set(func() {
					a.write = func(n int) error { // each second one has no answer
						seen <- true
						time.Sleep(time.Millisecond)
						a.set(func() { inDoubt = inDoubt || n%2 == 1 })
						if n%2 == 1 {
							return backends.ErrUnavailable
						}
						return nil
					}
					a.many = func(_ context.Context, names []string, load func() []backends.Outcome) []backends.Outcome {
						a.set(func() {
							if inDoubt && slices.Contains(names, "doubtful") {
								t.Error("a read-back shares a request")
							}
						})
						return load()
					}
				})
				// Others read all the time, so that there is always a request to join.
				busy, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for i := range 5 {
					other := waiter(t, a.desk, fmt.Sprintf("election-%d", i))
					all.Go(func() {
						for busy.Err() == nil {
							other.TryCampaign(busy)
						}
					})
				}
				pass(time.Second)
				story(t, e, seen)
				stop()
				all.Wait()
				if a.alone("doubtful") == 0 {
					t.Error("nothing was read back")
				}
			})
		})
	}
}
