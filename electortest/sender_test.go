package electortest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/electorhttp"
	"github.com/elector-go/elector/electortest"
)

// The code of docs/testing.md.

// A sender sends an invoice each minute while it leads.
type sender struct {
	send func(token elector.Token) error
}

func (s *sender) work(ctx context.Context, lease *elector.Lease) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := lease.Check(); err != nil {
			return err
		}
		if err := s.send(lease.Token()); err != nil {
			return err
		}
	}
}

func TestSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		w := sender{send: func(elector.Token) error { sent.Add(1); return nil }}
		s := electortest.New(t, "invoices", nil)
		stop := s.Start(func(ctx context.Context) error { return s.Elector.Run(ctx, w.work) })

		// wait lets an hour pass and returns how many invoices were sent in it.
		wait := func() int32 {
			before := sent.Load()
			time.Sleep(time.Hour)
			return sent.Load() - before
		}

		s.Win()
		if n := wait(); n < 59 {
			t.Errorf("the leader sent %d invoices in an hour", n)
		}

		s.Outage()
		if err := s.Loss(); !errors.Is(err, elector.ErrUnavailable) {
			t.Errorf("after an outage: %v", err)
		}
		if n := wait(); n != 0 {
			t.Errorf("without the store it sent %d invoices", n)
		}
		s.Restore()
		s.Win()
		if n := wait(); n < 59 {
			t.Errorf("after the outage it sent %d invoices in an hour", n)
		}

		other := s.AnotherLeads("other", "")
		if n := wait(); n != 0 {
			t.Errorf("while another process leads it sent %d invoices", n)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Win()

		if err := stop(); err != nil {
			t.Errorf("told to stop: %v", err)
		}
		if leader, err := s.Elector.Leader(t.Context()); err != nil || !leader.Vacant() {
			t.Errorf("after the stop: %+v, %v", leader, err)
		}
	})
}

func TestHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *electortest.Script
		sending, sent := make(chan bool), false
		w := sender{send: func(elector.Token) error {
			close(sending)
			time.Sleep(10 * time.Second) // less than ReleaseTimeout, which is TTL here
			lease, err := s.Elector.Lease()
			if err != nil {
				return err
			}
			sent = true
			return lease.Check()
		}}
		s = electortest.New(t, "invoices", nil)
		stop := s.Start(func(ctx context.Context) error { return s.Elector.Run(ctx, w.work) })

		<-sending // SIGTERM comes now
		if err := stop(); err != nil || !sent {
			t.Errorf("told to stop while it sent an invoice: %v; sent: %v", err, sent)
		}
		begun := time.Now()
		s.AnotherLeads("other", "")
		if waited := time.Since(begun); waited > time.Second {
			t.Errorf("the next process led %v later", waited)
		}
	})
}

func TestLateInvoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var receiver elector.Fence
		sending, paused, result := make(chan bool), make(chan bool), make(chan error)
		w := sender{send: func(token elector.Token) error {
			sending <- true
			<-paused
			err := receiver.Admit(t.Context(), "invoices", token)
			result <- err
			return err
		}}
		s := electortest.New(t, "invoices", nil)
		s.Start(func(ctx context.Context) error { return s.Elector.Run(ctx, w.work) })

		<-sending // the worker has checked its lease, and has not yet written
		s.Pause(time.Minute)
		other := s.AnotherLeads("other", "")
		if err := receiver.Admit(t.Context(), "invoices", other.Token()); err != nil {
			t.Fatal(err)
		}
		close(paused)
		if err := <-result; !errors.Is(err, elector.ErrStale) {
			t.Errorf("the late invoice: %v", err)
		}
	})
}

func TestReadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := electortest.New(t, "invoices", nil)
		s.Outage()
		ready := electorhttp.Observe(t.Context(), s.Elector).Ready()
		status := func() int {
			synctest.Wait()
			w := httptest.NewRecorder()
			ready.ServeHTTP(w, httptest.NewRequest("GET", "/ready", nil))
			return w.Code
		}
		if code := status(); code != http.StatusServiceUnavailable {
			t.Errorf("before it has reached the store: %d", code)
		}
		s.Restore()
		time.Sleep(10 * time.Second)
		if code := status(); code != http.StatusOK {
			t.Errorf("once it has reached the store: %d", code)
		}
	})
}
