package elector_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// A courier keeps the next write back until it is told to deliver it.
type courier struct {
	backends.Backend
	keep    atomic.Bool
	lose    atomic.Bool // the next write never arrives
	answers chan error  // what the writer is told before, or nil to let it wait
	deliver chan struct{}
}

func (c *courier) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if c.lose.Swap(false) {
		return backends.Record{}, backends.ErrUnavailable
	}
	if !c.keep.Swap(false) {
		return c.Backend.Swap(ctx, name, prev, next)
	}
	type answer struct {
		r   backends.Record
		err error
	}
	done := make(chan answer, 1)
	go func() {
		<-c.deliver
		r, err := c.Backend.Swap(context.Background(), name, prev, next)
		done <- answer{r, err}
	}()
	select {
	case err := <-c.answers:
		return backends.Record{}, err
	case a := <-done:
		return a.r, a.err
	}
}

// TestLateCreation: of the versions of a record only "there is none" comes
// back. A creation that was on its way all the time is applied after another
// leader's record has come and gone; its sender, who has seen that leader, must
// not lead before C. Its own token is the highest, so that it cannot be warned
// by that.
func TestLateCreation(t *testing.T) {
	for name, story := range map[string]func(c *courier, lead, look func()){
		"while it is on its way": func(c *courier, lead, look func()) {
			lead()
			look()
		},
		"before it was given up": func(c *courier, lead, look func()) {
			lead()
			c.answers <- backends.ErrUnavailable // so the store is read
		},
		"after it was given up": func(c *courier, lead, look func()) {
			c.answers <- backends.ErrUnavailable
			synctest.Wait()
			lead()
			look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore()
				c := &courier{Backend: s.Handle(), answers: make(chan error), deliver: make(chan struct{})}
				c.keep.Store(true)
				a := join(t, c, elector.Options{ID: "a", MinToken: elector.MaxToken - 1000})
				// b finds out by a renewal only, and renews late.
				b := join(t, blind{s.Handle()}, elector.Options{ID: "b", TTL: 15 * time.Second, RenewEvery: 13 * time.Second, RequestTimeout: time.Second / 2})
				first := begin(func() error { _, err := a.TryCampaign(t.Context()); return err })
				synctest.Wait()
				var lease *elector.Lease
				lead := func() { lease = win(t, b) }
				look := func() {
					if l, err := a.Leader(t.Context()); err != nil || l.ID != "b" {
						t.Fatalf("a reads %v, %v", l, err)
					}
				}
				story(c, lead, look)
				synctest.Wait()
				s.Delete("bubble")
				close(c.deliver)
				synctest.Wait()
				if l, err := a.Leader(t.Context()); err != nil || l.ID != "a" {
					t.Fatalf("the creation was not applied: %v, %v", l, err)
				}
				_, err := a.TryCampaign(t.Context())
				for _, err := range []error{<-first, err} {
					if err == nil && lease.Check() == nil {
						t.Errorf("a leads, and the lease of b is valid for %v", lease.Remaining())
					}
				}
				if lease.Check() != nil {
					t.Error("b has lost already, so that a may lead")
				}
				win(t, a)
				if lease.Check() == nil {
					t.Errorf("a leads, and the lease of b is valid for %v", lease.Remaining())
				}
			})
		})
	}
}

// A creation is repeated after another candidate has led and its record has gone, unseen.
// Its token is greater than that candidate's.
func TestRepeatedCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pass(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // so that tokens follow the time of day
		s := memory.NewStore()
		c := &courier{Backend: s.Handle(), answers: make(chan error), deliver: make(chan struct{})}
		c.keep.Store(true)
		a, b := join(t, c, elector.Options{ID: "a"}), join(t, blind{s.Handle()}, elector.Options{ID: "b"})
		defer close(c.deliver) // the first write is refused then
		won := begin(func() error { _, err := a.Campaign(t.Context()); return err })
		synctest.Wait()
		pass(10 * time.Millisecond)
		before := win(t, b).Token()
		s.Delete("bubble")
		c.answers <- backends.ErrUnavailable
		if err := wait(t, won, "a leads"); err != nil {
			t.Fatal(err)
		}
		if l, _ := a.Lease(); l.Token() <= before {
			t.Errorf("a leads with token %d after b with token %d", l.Token(), before)
		}
	})
}

// TestAbandonedOnce: that a lease is over counts until another leader was seen,
// and not again after that, although later campaigns end too.
func TestAbandonedOnce(t *testing.T) {
	t.Run("retaken late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			c := &courier{Backend: s.Handle(), answers: make(chan error), deliver: make(chan struct{})}
			a := join(t, c, elector.Options{ID: "a", MinToken: elector.MaxToken - 1000})
			b := join(t, blind{s.Handle()}, elector.Options{ID: "b"})
			c.keep.Store(true)
			next := campaign(t, a)
			synctest.Wait()
			c.answers <- backends.ErrUnavailable // this write stays on its way; the next one is applied
			first := wait(t, next, "a leads")
			s.Delete("bubble")
			<-first.Context().Done()
			pass(20 * time.Second)
			c.lose.Store(true)
			if _, err := a.TryCampaign(t.Context()); err == nil {
				t.Fatal("a leads although its write was lost")
			}
			lease := win(t, b)
			if l, err := a.Leader(t.Context()); err != nil || l.ID != "b" {
				t.Fatalf("a reads %v, %v", l, err)
			}
			pass(20 * time.Second) // its token is lower than that of a, which counts for C
			s.Delete("bubble")
			close(c.deliver)
			synctest.Wait()
			if l, err := a.Leader(t.Context()); err != nil || l.ID != "a" {
				t.Fatalf("the creation was not applied: %v, %v", l, err)
			}
			if _, err := a.TryCampaign(t.Context()); err == nil && lease.Check() == nil {
				t.Errorf("a leads, and the lease of b is valid for %v", lease.Remaining())
			}
			if lease.Check() != nil {
				t.Error("b has lost already, so that a may lead")
			}
		})
	})
}

// TestPushedRival: a leader whose token is lower than one seen before is not
// believed when it is pushed, for it could be an old state that comes late. It
// counts all the same if an acquisition is on its way.
func TestPushedRival(t *testing.T) {
	t.Run("with a lower token", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := memory.NewStore()
			handle := s.Handle()
			c := &courier{Backend: handle, answers: make(chan error), deliver: make(chan struct{})}
			a := join(t, watched{c, handle}, elector.Options{ID: "a", TTL: time.Minute, MinToken: elector.MaxToken - 1000})
			b := join(t, blind{s.Handle()}, elector.Options{ID: "b", TTL: time.Minute})
			first := win(t, a)
			s.Delete("bubble")
			<-first.Context().Done()
			next := campaign(t, a)
			c.keep.Store(true)
			for c.keep.Load() { // until its creation is on its way
				pass(time.Second / 10)
			}
			lease := win(t, b)
			synctest.Wait()
			s.Delete("bubble")
			synctest.Wait()
			close(c.deliver)
			synctest.Wait()
			select {
			case <-next:
				t.Errorf("a leads, and the lease of b is valid for %v", lease.Remaining())
			default:
			}
			if lease.Check() != nil {
				t.Error("b has lost already, so that a may lead")
			}
			wait(t, next, "a leads in the end")
		})
	})
}

// A watched courier reports changes as the store does.
type watched struct {
	*courier
	watcher backends.Watcher
}

func (w watched) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return w.watcher.Watch(ctx, name, changed)
}

// TestLateRenewal: a renewal without an answer that is not there when the store
// is read, and is applied after that, is a renewal like any other, and counts
// from when it was sent.
func TestLateRenewal(t *testing.T) {
	t.Run("is adopted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := &courier{Backend: memory.NewStore().Handle(), answers: make(chan error), deliver: make(chan struct{})}
			var told []time.Duration
			a := join(t, c, elector.Options{TTL: 10 * time.Minute, RenewEvery: 3 * time.Minute, Trace: &elector.Trace{
				Renewed: func(_ context.Context, l elector.LeaseInfo) { told = append(told, l.Remaining) },
			}})
			lease := win(t, a)
			c.keep.Store(true)
			pass(3 * time.Minute)
			c.answers <- backends.ErrUnavailable // so the store is read, which still shows the state before
			synctest.Wait()
			close(c.deliver)
			synctest.Wait()
			if got, want := lease.Remaining(), 6*time.Minute; got != want {
				t.Errorf("before the next renewal the lease is valid for %v, want %v", got, want)
			}
			pass(5 * time.Minute)
			if err := lease.Check(); err != nil {
				t.Errorf("a late renewal cost the lease: %v", err)
			}
			if got := lease.Remaining(); got <= 6*time.Minute {
				t.Errorf("renewals do not go on: the lease is valid for %v", got)
			}
			if len(told) < 2 || told[0] >= 9*time.Minute {
				t.Errorf("Trace.Renewed reported %v, want the late renewal first, with less than 9 minutes", told)
			}
		})
	})
}

// TestCreationInDoubt: what speaks against a creation, or for another leader, is
// not forgotten, whatever the order in which it comes.
func TestCreationInDoubt(t *testing.T) {
	type race struct {
		*testing.T
		store  *memory.Store
		faults *fault.Backend
		a      *elector.Elector
	}
	lead := func(r race, every time.Duration) *elector.Lease {
		return win(r.T, join(r.T, blind{r.store.Handle()}, elector.Options{ID: "b", TTL: 30 * time.Second, RenewEvery: every, RequestTimeout: time.Second}))
	}
	alone := func(r race, l, b *elector.Lease) {
		r.Helper()
		if l != nil && l.Check() == nil && b.Check() == nil {
			r.Errorf("a leads for %v, and b for %v", l.Remaining(), b.Remaining())
		}
	}
	for name, story := range map[string]func(r race){
		// The campaign ends in the moment in which the outcome turns out unknown.
		"cancelled when it fails": func(r race) {
			release, applied := make(chan struct{}), make(chan struct{})
			ctx, cancel := context.WithCancel(r.Context())
			r.faults.Next("swap", func(c context.Context, call fault.Call, send fault.Send) (backends.Record, error) {
				cancel()
				return fault.Late(release, applied)(c, call, send)
			})
			if _, err := r.a.TryCampaign(ctx); err == nil {
				r.Fatal("a campaign that was cancelled has won")
			}
			b := lead(r, 10*time.Second)
			r.store.Delete("bubble")
			close(release)
			<-applied
			l, _ := r.a.TryCampaign(r.Context())
			alone(r, l, b)
		},
		// A read has found b, and is answered after a's late creation was seen.
		"a late answer": func(r race) {
			apply, answer, late := make(chan struct{}), make(chan struct{}), make(chan struct{})
			r.faults.Next("swap", func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
				<-apply
				state, err := send(context.WithoutCancel(ctx))
				<-answer
				return state, err
			})
			won := begin(func() *elector.Lease { l, _ := r.a.TryCampaign(r.Context()); return l })
			synctest.Wait()
			b := lead(r, 20*time.Second)
			r.faults.Next("load", func(ctx context.Context, _ fault.Call, send fault.Send) (backends.Record, error) {
				state, err := send(ctx)
				<-late
				return state, err
			})
			read := begin(func() error { _, err := r.a.Leader(r.Context()); return err })
			synctest.Wait()
			r.store.Delete("bubble")
			close(apply)
			synctest.Wait()
			if l, err := r.a.Leader(r.Context()); err != nil || l.ID != "a" {
				r.Fatalf("the creation was not applied: %v, %v", l, err)
			}
			close(late)
			<-read
			close(answer)
			alone(r, <-won, b)
		},
		// The first of two creations is applied when the holder has led by the
		// second, and lost it.
		"another write of the same": func(r race) {
			release, applied := make(chan struct{}), make(chan struct{})
			r.faults.Next("swap", fault.Late(release, applied))
			l := win(r.T, r.a)
			r.store.Delete("bubble")
			b := lead(r, 20*time.Second)
			r.store.Delete("bubble")
			close(release)
			<-applied
			pass(10 * time.Second) // a has tried to renew
			alone(r, l, b)
		},
		// An older state is put back, with fewer extensions than a has seen.
		"put back, with fewer extensions": func(r race) {
			b := lead(r, 10*time.Second)
			backup := r.store.Get("bubble")
			r.a.Leader(r.Context())
			change(r.T, r.store, set(r.T, "t_request", "1"))
			r.a.Leader(r.Context())
			pass(40 * time.Second) // b has renewed, and a has not looked
			r.store.Put("bubble", backup)
			l, _ := r.a.TryCampaign(r.Context())
			alone(r, l, b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore()
				f, b := fault.Wrap(blind{s.Handle()})
				story(race{t, s, f, join(t, b, elector.Options{ID: "a", MinToken: elector.MaxToken - 1000, TTL: 30 * time.Second, RequestTimeout: 4 * time.Second})})
			})
		})
	}
}
