package elector_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fault"
)

// panicking is a log handler with a bug.
type panicking struct{ slog.Handler }

func (panicking) Enabled(context.Context, slog.Level) bool  { return true }
func (panicking) Handle(context.Context, slog.Record) error { panic("a bug in the log handler") }
func (p panicking) WithAttrs([]slog.Attr) slog.Handler      { return p }

// A log handler that panics ends neither the process nor the lease: leading,
// renewing and resigning all log something.
func TestLogHandlerPanics(t *testing.T) {
	e, err := elector.New(memory.New(), "log", &elector.Options{Logger: slog.New(panicking{})})
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// stuck is a log handler that does not return until it is freed.
type stuck struct {
	slog.Handler
	free chan struct{}
}

func (s stuck) Handle(ctx context.Context, r slog.Record) error {
	<-s.free
	return s.Handler.Handle(ctx, r)
}
func (s stuck) WithAttrs(attrs []slog.Attr) slog.Handler {
	return stuck{s.Handler.WithAttrs(attrs), s.free}
}

// A log that nobody reads costs no lease, also in an outage that is harmless otherwise. What
// it can keep is written when it is read again.
func TestLogStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log jsonLines
		h := stuck{slog.NewJSONHandler(&log, nil), make(chan struct{})}
		store := memory.NewStore()
		f, b := fault.Wrap(store.Handle())
		e := join(t, b, elector.Options{Logger: slog.New(h)})
		start := time.Now()
		l := win(t, e)
		if took := time.Since(start); took > time.Second {
			t.Errorf("Campaign took %v", took)
		}
		for i := range 3 {
			pass(time.Minute)
			f.Always(fault.Fails(fmt.Errorf("%w: for the %d. time", backends.ErrUnavailable, i)))
			pass(6 * time.Second)
			f.Always(nil)
		}
		pass(time.Minute)
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		close(h.free)
		pass(time.Second)
		for _, line := range []string{"elector: leads", "renewal fails", "for the 2. time", "renewal works again"} {
			if !strings.Contains(string(log.text), line) {
				t.Errorf("not in the log: %s\n%s", line, log.text)
			}
		}
	})
}

// jsonLines gathers what is logged, as JSON.
type jsonLines struct {
	mutex sync.Mutex
	text  []byte
}

func (l *jsonLines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.text = append(l.text, p...)
	return len(p), nil
}

// A token is a number in all lines of the log, whatever its type there.
func TestLoggedTokens(t *testing.T) {
	o := elector.Options{ID: "mine", TTL: time.Minute, RenewEvery: 10 * time.Second}
	var log jsonLines
	o.Logger = slog.New(slog.NewJSONHandler(&log, nil))
	onStage(t, o, func(t *testing.T, s *stage) {
		broken, b := fault.Wrap(s.store.Handle())
		waits, stop := context.WithCancel(t.Context())
		o.ID = "other"
		other := join(t, b, o)
		l := s.run()
		go other.Campaign(waits) // "campaign waits"
		s.fault.Next("swap", fault.Fails(backends.ErrUnavailable), fault.Fails(backends.ErrUnavailable))
		pass(time.Minute)
		s.asks(t.Context(), l.Token(), "") // "requested to resign"
		pass(time.Minute)
		s.end() // "leads no more", and the other leads
		pass(time.Minute)
		broken.Always(fault.Fails(backends.ErrUnavailable))
		other.Resign(t.Context()) // "release failed"
		pass(10 * time.Minute)
		stop()
	})
	seen := map[string]bool{}
	for _, line := range bytes.Split(bytes.TrimSpace(log.text), []byte("\n")) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if token, has := fields["token"]; has {
			seen[fields["msg"].(string)] = true
			if _, number := token.(float64); !number {
				t.Errorf("the token is not a number: %s", line)
			}
		}
	}
	for _, m := range []string{"leads", "campaign waits while the election is held", "renewal fails and is tried again", "renewal works again", "requested to resign", "leads no more", "release failed"} {
		if !seen["elector: "+m] {
			t.Errorf("no line %q with a token in %s", m, log.text)
		}
	}
}

// What a store causes in many elections is logged once for the store: for the first
// election, with their number, and when all work again. What concerns one election
// alone is not held back by that.
func TestLogOfManyElections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 50
		var log jsonLines
		f, b := fault.Wrap(memory.New())
		f.Always(fault.Fails(backends.ErrUnavailable))
		healthy := errors.New("no disk")
		campaign := func(i int, check func(context.Context) error) (stop context.CancelFunc) {
			e, err := elector.New(b, fmt.Sprintf("election-%d", i), &elector.Options{TTL: time.Minute, Healthy: check, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { e.Close() })
			ctx, cancel := context.WithCancel(t.Context())
			go e.Campaign(ctx)
			return cancel
		}
		for i := range n {
			campaign(i, nil)
		}
		campaign(n, func(context.Context) error { return healthy })
		ended := campaign(n+1, nil)
		pass(5 * time.Minute)
		ended() // it does not keep the outage from ending
		pass(time.Minute)
		f.Always(nil)
		pass(5 * time.Minute)
		const fails, works = "elector: campaign fails and is tried again", "elector: campaign works again"
		type line struct {
			Msg       string
			Election  string
			Elections int
		}
		var lines []line
		for _, text := range bytes.Split(bytes.TrimSpace(log.text), []byte("\n")) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				t.Fatal(err)
			}
			if l.Msg == fails || l.Msg == works {
				lines = append(lines, l)
			}
		}
		first := 0
		for _, l := range lines {
			if l.Msg == fails && l.Election != "" && l.Election != fmt.Sprintf("election-%d", n) {
				first++
			}
		}
		several, over := line{fails, "", n + 1}, line{works, "", n + 1}
		unhealthy := line{fails, fmt.Sprintf("election-%d", n), 0}
		if first != 1 || len(lines) != 4 || !slices.Contains(lines, several) || !slices.Contains(lines, over) || !slices.Contains(lines, unhealthy) {
			t.Errorf("%d lines for the first of many: %+v", first, lines)
		}
	})
}

// A store that does not answer says so in several wordings, by turns: that is one reason,
// logged once. An error that is no such one is another reason.
func TestLogOfOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log jsonLines
		f, b := fault.Wrap(memory.New())
		turn := 0
		f.Always(func(context.Context, fault.Call, fault.Send) (backends.Record, error) {
			turn++
			return backends.Record{}, fmt.Errorf("%w: %s", backends.ErrUnavailable, strings.Repeat("x", turn))
		})
		e, err := elector.New(b, "a", &elector.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		go e.Campaign(t.Context())
		pass(5 * time.Minute)
		count := func() int { return bytes.Count(log.text, []byte("campaign fails and is tried again")) }
		if n := count(); n != 1 {
			t.Errorf("%d lines for one outage, want 1: %s", n, log.text)
		}
		f.Always(fault.Fails(errors.New("something else")))
		pass(5 * time.Minute)
		if n := count(); n != 2 {
			t.Errorf("%d lines once the reason is another, want 2: %s", n, log.text)
		}
	})
}
