package conformance

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// noLine is why the cases of places in line do not apply.
const noLine = "the backend is not a Liner: the store keeps no place in line beside the record"

// liner returns a handle that is a Liner, or nil if the backend is not one.
func (s *suite) liner() backends.Liner {
	l, ok := backends.AsLiner(s.open())
	if !ok {
		s.notApplicable(noLine)
		return nil
	}
	return l
}

// A throughLine watches by WatchLine.
type throughLine struct{ backends.Liner }

func (t throughLine) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return t.WatchLine(ctx, name, changed, func(string) {})
}

// line/subscribe: what watch/subscribe demands of Watch holds for WatchLine.
func lineSubscribe(s *suite) {
	if b := s.liner(); b != nil {
		s.subscribes(throughLine{b})
	}
}

// line/end: what watch/end demands of Watch holds for WatchLine.
func lineEnd(s *suite) {
	b, closing := s.liner(), s.liner()
	if b != nil && closing != nil {
		s.endsWatches(throughLine{b}, throughLine{closing})
	}
}

// line/place: SwapPlace replaces the place in line if it is the one given, and all
// who watch the election are shown it. The record and other elections stay as they
// are.
func linePlace(s *suite) {
	a, b := s.liner(), s.liner()
	if a == nil || b == nil {
		return
	}
	held := s.swap(a, s.name, backends.Record{}, acquisition("holder", 1))
	other := s.name + "-other"
	s.swap(a, other, backends.Record{}, acquisition("holder", 1))
	here, there, elsewhere := s.lineUp(a, s.name), s.lineUp(b, s.name), s.lineUp(b, other)
	const rule = "WatchLine shows each change of the place in line"
	both := func(place string) {
		here.until(place, rule)
		there.until(place, rule)
	}
	odd := "1 \"\\%20<&>'; $1 \u00e9\u2603 "
	for _, p := range []struct {
		by         backends.Liner
		prev, next string
	}{
		{a, "", "1 first"}, {b, "1 first", "1 second"}, {a, "1 second", ""}, {b, "", odd},
		{a, odd, strings.Repeat("x", backends.MaxPlace)}, {a, strings.Repeat("x", backends.MaxPlace), "1 last"},
	} {
		s.must(s.place(p.by, s.name, p.prev, p.next), "SwapPlace from the present place %q", p.prev)
		both(p.next)
		for _, wrong := range []string{"another", ""} {
			if wrong == p.next {
				continue
			}
			if err := s.place(b, s.name, wrong, "wrong"); !errors.Is(err, backends.ErrConflict) {
				s.Fatalf("SwapPlace replaces the place only if it is the one given: from %q, while it is %q, must be ErrConflict, and it returned: %v", wrong, p.next, err)
			}
		}
	}
	s.shows([]backends.Backend{a, b}, s.name, held, "SwapPlace changes nothing that Load returns")
	held = s.swap(b, s.name, held, renewal(held))
	s.must(s.place(b, s.name, "1 last", "2 last"), "SwapPlace after a renewal, which leaves the place as it is")
	both("2 last")
	if l, ok := a.(backends.Lister); ok {
		names, err := l.List(s.patient())
		s.must(err, "List")
		for _, name := range names {
			if strings.HasPrefix(name, s.name) && name != s.name && name != other {
				s.Fatalf("List names elections, and not places in line: it named %s", quote(name))
			}
		}
	}
	if got := elsewhere.seen(); len(got) > 0 {
		s.Fatalf("WatchLine shows no other election's place: it showed %q", got)
	}
	next := s.swap(a, s.name, held, acquisition("next", 2))
	s.shows([]backends.Backend{a, b}, s.name, next, "an acquisition works while there is a place in line")

	if err := s.place(a, "../"+s.name, "", "1 x"); !errors.Is(err, backends.ErrName) {
		s.Errorf("SwapPlace refuses a name that no election has with ErrName: it returned %v", err)
	}
	closed, _ := backends.AsLiner(s.unclosed())
	s.must(s.close(closed), "Close")
	if err := s.place(closed, s.name, "", "1 x"); err == nil {
		s.Errorf("SwapPlace returns an error after Close: it returned none")
	}
}

// place calls SwapPlace.
func (s *suite) place(b backends.Liner, name, prev, next string) error {
	s.Helper()
	_, err := s.request("SwapPlace", func(ctx context.Context) (backends.Record, error) {
		return backends.Record{}, b.SwapPlace(ctx, name, prev, next)
	})
	return err
}

// A lineUp is a WatchLine that runs, and the places that it has shown.
type lineUp struct {
	s    *suite
	news chan struct{} // has a value after a place

	mutex sync.Mutex
	all   []string
}

// lineUp starts a WatchLine, which ends with the case, and waits for the record.
func (s *suite) lineUp(b backends.Liner, name string) *lineUp {
	l := &lineUp{s: s, news: make(chan struct{}, 1)}
	ready := make(chan struct{})
	var once sync.Once
	ctx, cancel := context.WithCancel(s.Context())
	s.Cleanup(cancel)
	go calm(func() error {
		return b.WatchLine(ctx, name, func(backends.Record) { once.Do(func() { close(ready) }) }, func(place string) {
			l.mutex.Lock()
			l.all = append(l.all, place)
			l.mutex.Unlock()
			select {
			case l.news <- struct{}{}:
			default:
			}
		})
	})
	wait(s, ready, "WatchLine reports the present record first")
	return l
}

func (l *lineUp) seen() []string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.all
}

// until waits until the place is the latest that was shown.
func (l *lineUp) until(place, rule string) {
	l.s.Helper()
	limit := l.s.limit()
	for overdue := time.After(limit); ; {
		if all := l.seen(); len(all) > 0 && all[len(all)-1] == place {
			return
		}
		select {
		case <-l.news:
		case <-overdue:
			l.s.first.wait()
			l.s.Fatalf("%s: within %v it has not shown %q, but %q", rule, limit.Round(time.Second), place, l.seen())
		}
	}
}
