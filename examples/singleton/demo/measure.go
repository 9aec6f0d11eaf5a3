package demo

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Figures are what two processes of the singleton have shown on one store.
type Figures struct {
	TTL      time.Duration
	Connect  time.Duration // from the start of the first process until the store had answered
	Acquire  time.Duration // from there until it led, as the only candidate
	Handover time.Duration // from SIGTERM to the leader until the other one led
	Takeover time.Duration // from kill -9 of the leader until the other one led

	HandoverLimit time.Duration // a longer Handover is late
	TakeoverLimit time.Duration // a longer Takeover is late: tau

	Requests int           // of the one that waited, see Trace.Request
	Idle     time.Duration // the time in which they were counted

	Tokens []elector.Token // of the leaders, in their order

	Late     []string // what was late, and for how long the machine stood still
	Problems []string // what was not as promised; empty if everything was
	TimeLine string   // what happened, for people, to look for the reason
}

// PerMinute returns how many requests a waiting process makes in a minute.
func (f *Figures) PerMinute() float64 {
	if f.Idle <= 0 {
		return 0
	}
	return float64(f.Requests) / f.Idle.Minutes()
}

// Measure runs program, the singleton, in two processes on the store that url
// names, which is all that they know of it: one leads and one waits. The leader
// is told to end, and another one is killed. It takes about ten TTLs and ends
// early with ctx. The TTL is 2 s, or the least that the store allows. The
// backend's package must be imported.
//
// What was not as promised is in the Figures; an error means that there are
// none.
func Measure(ctx context.Context, program, url string) (*Figures, error) {
	b, err := backends.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	_, pushes := backends.AsWatcher(b)
	var timeLine bytes.Buffer
	d := &demo{program: program, url: url, rules: rulesOf(b.Describe(), pushes), print: &printer{out: &timeLine}}
	v, err := d.perform(ctx, d.playPair)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := b.Load(asking, election)
	if err != nil {
		return nil, err
	}
	v.judgeRecord(d.History, r)
	f := v.figures(d.History)
	f.TimeLine = timeLine.String()
	return f, nil
}

// election is the name that the singleton gives to its own.
const election = "invoice-sender"

// judgeRecord checks that the processes elected their leaders in this store,
// and that the last one released its record there.
func (v *verdict) judgeRecord(events []Event, r backends.Record) {
	var last elector.Token
	for _, e := range events {
		if e.Kind == leads {
			last = max(last, e.Token)
		}
	}
	switch {
	case elector.Token(r.Token) != last:
		v.problem("the store's record has token %d, and not %v, the last leader's: was it elected in another store?", r.Token, last)
	case !r.Vacant():
		v.problem("the store's record still names %s, which was told to end", r.Holder)
	}
}

// Requests are counted over so many renewals, and not before so many have
// passed: a waiter that polls first learns when to read.
const settling, counting = 3, 10

// playPair has two processes, of which one leads.
func (d *demo) playPair() {
	d.launch("A")
	d.Until("A leads and writes", d.leads)
	d.launch("B")
	d.Until("B waits", func() bool { return d.joined("B") })
	for n := range settling + counting + 2 { // one more than needed: reports come out of order
		d.Until("A renews its lease", func() bool { return len(renewals(d.History, "B")) > n })
	}

	d.Act(terminated, "A")
	d.Until("the election is handed over to B", func() bool { return d.leads() && d.children["A"].gone })
	d.launch("C")
	d.Until("C waits", func() bool { return d.joined("C") })

	d.Act(killed, "B")
	d.Until("C leads", d.leads)
	d.Act(terminated, "C")
	d.Until("all have ended", func() bool { return d.gone() == len(d.children) })
}

// renewals returns the renewals of the first leader that came after the
// process began to wait.
func renewals(events []Event, waiter string) (all []Event) {
	waiting := false
	for _, e := range events {
		switch {
		case e.Kind == waits && e.Process == waiter:
			waiting = true
		case e.Kind == renewed && e.Process != waiter && waiting:
			all = append(all, e)
		case e.Kind == terminated || e.Kind == killed:
			return all
		}
	}
	return all
}

// figures reads off the figures of playPair, and judges them.
func (v *verdict) figures(events []Event) *Figures {
	f := &Figures{TTL: v.rules.ttl, HandoverLimit: v.rules.handover, TakeoverLimit: v.rules.takeover}
	begin, _ := first(events, func(e Event) bool { return e.Kind == started })
	there, ok := first(events, func(e Event) bool { return e.Kind == opened })
	office, leading := first(events, func(e Event) bool { return e.Kind == leads })
	if ok && leading {
		f.Connect, f.Acquire = there.Boot-begin.Boot, office.Boot-there.Boot
	} else {
		v.problem("the first process has not become leader")
	}

	if all := renewals(events, "B"); len(all) > settling+counting {
		from, until := all[settling].Boot, all[settling+counting].Boot
		f.Idle = until - from
		for _, e := range events {
			if e.Kind == asked && e.Process == "B" && e.Boot > from && e.Boot <= until {
				f.Requests++
			}
		}
	} else {
		v.problem("the leader has renewed %d times in front of a waiter, %d are needed to count its requests", len(all), settling+counting+1)
	}

	f.Handover = v.timed(events, terminated, "handover after SIGTERM", v.rules.handover)
	f.Takeover = v.timed(events, killed, "takeover after kill -9", v.rules.takeover)
	for _, e := range events {
		if e.Kind == leads {
			f.Tokens = append(f.Tokens, e.Token)
		}
	}
	f.Problems = v.problems
	for _, s := range v.steps {
		if late := s.late(); late != "" {
			f.Late = append(f.Late, fmt.Sprintf("%s took %.2f s: %s", s.what, s.took.Seconds(), late))
		}
	}
	return f
}

// timed is succession, and how long it took.
func (v *verdict) timed(events []Event, act, what string, limit time.Duration) time.Duration {
	before := len(v.steps)
	v.succession(events, act, what, limit)
	if len(v.steps) == before {
		return 0
	}
	return v.steps[before].took
}
