package elector

import (
	"log/slog"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A store pushes that a leader's record is gone, and then another's, before
// anybody has read in between: the first leader may know nothing of it yet, so
// the vacancy that is left is not to be had at once.
func TestPushed(t *testing.T) {
	t.Run("mx/vanished", func(t *testing.T) {
		e, err := New(memory.New(), "pushed", &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{e: e, woken: make(chan struct{}, 1)}
		leads := backends.Record{Holder: "first", Token: 5, TTL: time.Hour, RenewEvery: time.Minute,
			Attempt: backends.Attempt{Nonce: "first", Sequence: 1}, Version: "1"}
		resigned := leads
		resigned.Holder, resigned.Token, resigned.Attempt.Nonce, resigned.Version = "", 6, "second", "2"

		w.pushed(resigned)
		if at := e.view.claimable(); at > e.clock.Now().Mono {
			t.Fatal("a vacancy cannot be claimed, so this test shows nothing")
		}
		leads.Token, resigned.Token, resigned.Version = 7, 8, "3"
		w.pushed(leads)
		w.pushed(backends.Record{})
		w.pushed(resigned)
		if at, now := e.view.claimable(), e.clock.Now().Mono; at < now+time.Hour {
			t.Errorf("what a leader's vanished record left behind may be claimed in %v, before its lease of an hour is surely over", at-now)
		}
	})
	// The second leader has never seen the first one's record, which vanished,
	// and so has a lower token. The first one's is shown late.
	t.Run("mx/vanished-late", func(t *testing.T) {
		e, err := New(memory.New(), "late", &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{e: e, woken: make(chan struct{}, 1)}
		led := func(by string, token uint64, ttl time.Duration) backends.Record {
			return backends.Record{Holder: by, Token: token, TTL: ttl, RenewEvery: ttl / 3,
				Attempt: backends.Attempt{Nonce: by, Sequence: 1}, Version: backends.Version(by)}
		}
		read := func(r backends.Record) { e.view.read(r, e.view.mark()) }
		read(led("second", 5, time.Hour))
		w.pushed(led("first", 9, time.Second))
		w.pushed(backends.Record{})
		read(backends.Record{}) // the second one's has vanished too
		if at, now := e.view.claimable(), e.clock.Now().Mono; at < now+time.Hour {
			t.Errorf("an election may be claimed in %v whose leader, with a lease of an hour, was read a moment ago", at-now)
		}

		// One who has resigned is waited for no more.
		e.view = view{clock: e.clock, o: &e.o}
		resigned := led("second", 6, time.Hour)
		resigned.Holder, resigned.Attempt.Sequence, resigned.Version = "", 2, "resigned"
		read(led("second", 5, time.Hour))
		read(resigned)
		read(led("third", 7, time.Second))
		read(backends.Record{})
		if at, now := e.view.claimable(), e.clock.Now().Mono; at <= now || at > now+time.Minute {
			t.Errorf("an election may be claimed in %v, whose last leader had a lease of a second and the one before has resigned", at-now)
		}
	})
	// A leader with a lower token is pushed where there was no record, and is gone
	// when the record is read.
	t.Run("pushed and gone", func(t *testing.T) {
		e, err := New(memory.New(), "gone", &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{e: e, woken: make(chan struct{}, 1)}
		r := backends.Record{Holder: "first", Token: 9, TTL: 2, RenewEvery: 1, Attempt: backends.Attempt{Nonce: "first", Sequence: 1}, Version: "1"}
		w.pushed(r)
		e.view.read(backends.Record{}, e.view.mark())
		r.Holder, r.Token, r.TTL, r.Attempt.Nonce, r.Version = "second", 5, time.Hour, "second", "2"
		w.pushed(r)
		e.view.read(backends.Record{}, e.view.mark())
		if at, now := e.view.claimable(), e.clock.Now().Mono; at < now+time.Hour {
			t.Errorf("an election may be claimed in %v whose leader, with a lease of an hour, was pushed a moment ago", at-now)
		}
	})
	// Of two states with one attempt it is not known which is newer.
	t.Run("pushed late", func(t *testing.T) {
		e, err := New(memory.New(), "extended", &Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		w := &watcher{e: e, woken: make(chan struct{}, 1)}
		plain := backends.Record{Holder: "first", Token: 5, TTL: time.Millisecond, RenewEvery: 1,
			Attempt: backends.Attempt{Nonce: "first", Sequence: 1}, Version: "1"}
		critical := plain
		critical.Extensions, critical.Version = `{"c_stop":"1"}`, "2"
		w.pushed(plain)
		e.view.read(critical, e.view.mark())
		w.pushed(plain)
		if at := e.view.claimable(); at != forever || !w.doubt {
			t.Errorf("a record whose critical extension was read may be claimed at %v after an older state was pushed", at)
		}
	})
}
