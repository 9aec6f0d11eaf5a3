package shortage

import (
	"crypto/rand"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/memory"
)

// fresh is for names of elections: a test may run again in the same process.
func fresh(name string) string { return name + strings.ToLower(rand.Text()) }

// A child campaigns when it is told to, counts anew in each phase, and ends with its input.
func TestChild(t *testing.T) {
	const elections = 50
	input, tell := io.Pipe()
	sights, ended := make(chan sight, 1000), make(chan error, 1)
	work := task{URL: "memory://shortage", Elections: elections, AtATime: 8, Prefix: fresh("child"), Limit: time.Minute}
	go func() {
		ended <- work.run(input, func(s sight) { sights <- s })
	}()
	if s := <-sights; s.Phase != 0 || s.Led != 0 {
		t.Errorf("it begins with %+v", s)
	}
	io.WriteString(tell, "\n")
	s := sight{}
	for s.Led < elections {
		s = <-sights
	}
	if s.Phase != 1 || s.Requests.Records < elections || s.Requests.Most < 1 || s.Goroutines < elections || s.Processor == 0 {
		t.Errorf("it leads with %+v", s)
	}
	io.WriteString(tell, "\n")
	for s.Phase == 1 {
		s = <-sights
	}
	if s.Phase != 2 || s.Led != elections || s.Least != elections || s.Ended != 0 || s.Requests.Records >= elections {
		t.Errorf("it begins anew with %+v", s)
	}
	tell.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A tally keeps the least number of workers, also if they are more again.
func TestTally(t *testing.T) {
	var tally tally
	tally.begin()
	tally.begin()
	tally.reset()
	tally.end()
	tally.begin()
	if least, ended := tally.read(); least != 1 || ended != 1 {
		t.Errorf("least %d, ended %d", least, ended)
	}
	tally.reset()
	if least, ended := tally.read(); least != 2 || ended != 0 {
		t.Errorf("least %d, ended %d after a reset", least, ended)
	}
}

// A child ends after its limit, and does not begin without a store.
func TestChildEnds(t *testing.T) {
	open, end := io.Pipe()
	defer end.Close()
	work := task{URL: "memory://shortage", Elections: 1, AtATime: 1, Prefix: fresh("ends"), Limit: time.Millisecond}
	if err := work.run(open, func(sight) {}); err == nil {
		t.Error("no error after its limit")
	}
	work.URL = "nothing://"
	if err := work.run(open, func(sight) {}); err == nil {
		t.Error("no error without a store")
	}
}

// A meter counts each kind of request.
func TestMeter(t *testing.T) {
	b, err := backends.Open(t.Context(), "memory://shortage")
	if err != nil {
		t.Fatal(err)
	}
	m := &meter{batching: b.(batching)}
	next := backends.Record{Holder: "a", Token: 1, TTL: time.Minute, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
	one, two, three := fresh("one"), fresh("two"), fresh("three")
	if _, err := m.Swap(t.Context(), one, backends.Record{}, next); err != nil {
		t.Fatal(err)
	}
	m.SwapMany(t.Context(), []backends.Change{{Name: two, Next: next}, {Name: three, Next: next}})
	m.SwapMany(t.Context(), []backends.Change{{Name: two, Next: next}})
	m.Load(t.Context(), one)
	for _, o := range m.LoadMany(t.Context(), []string{one, two, three}) {
		if o.Err != nil || o.Record.Holder != "a" {
			t.Errorf("%+v", o)
		}
	}
	want := Requests{Most: 1, Batches: 1, Swaps: 2, Reads: 1, Loads: 1, Records: 8}
	if got := m.read(); got != want || got.Single() != 3 {
		t.Errorf("%+v; want %+v", got, want)
	}
	end, again := m.loads(1), m.swaps(1)
	m.reset()
	if got := m.read(); got != (Requests{Most: 2}) {
		t.Errorf("%+v while two are under way", got)
	}
	end()
	again()
	m.reset()
	if got := m.read(); got != (Requests{}) {
		t.Errorf("%+v at the end", got)
	}
}

// Lines have the same cause if only names and numbers differ; one that comes long after
// the last does not repeat it.
func TestJournal(t *testing.T) {
	j := newJournal("crowd")
	now := time.Now()
	j.add("lost crowd_1 after 2.5s", now)
	j.add("lost crowd_22 after 13s", now.Add(9*time.Second))
	j.add("lost crowd_3 after 1s", now.Add(20*time.Second))
	j.add("denied", now)
	if got, want := j.read(), (Logged{4, 2, 1, "lost crowd_1 after 2.5s", 3}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
	j.reset()
	log := j.logger().With("election", "crowd_1")
	log.Info("leads")
	log.Warn("fails", slog.String("error", "no answer"), slog.Int("tries", 2))
	if got, want := j.read(), (Logged{1, 1, 0, "fails; error: no answer; tries: 2", 1}); got != want {
		t.Errorf("%+v; want %+v", got, want)
	}
}
