package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
)

// TestMain lets the test binary be a candidate too: start runs the program that
// it is called from.
func TestMain(m *testing.M) {
	if candidateMain() {
		return
	}
	child.Prepare()
	leak.Main(m)
}

func TestElectionNames(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range peers.All() {
		for _, s := range []scene{idle, slow} {
			for number := range 2 {
				name := electionName(l, s, "t3rs", number)
				if err := backends.CheckName(name); err != nil || strings.ContainsAny(name, "/-+.") || len(name) > 58 {
					t.Errorf("%q is not fit for a table's name: %v", name, err)
				}
				if key := l.Store + " " + name; seen[key] {
					t.Errorf("%q is there twice", key)
				} else {
					seen[key] = true
				}
			}
		}
	}
}

// A candidate that cannot start must be an error and not a round that waits.
func TestCandidateThatCannotStart(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p, err := start(peers.Library{Name: "none", Store: "etcd"}, peers.Config{ID: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.end()
	if err := p.await(ctx, leads); err == nil || !strings.Contains(err.Error(), "has ended") || !strings.Contains(err.Error(), `no library "none"`) {
		t.Errorf("error %v; want that it has ended, and why", err)
	}
	if p.alive() {
		t.Error("it is said to be alive")
	}
}

func TestProcessKeepsRuns(t *testing.T) {
	p := newProcess("a")
	p.Again = &child.Again{}
	p.take(message{Kind: began, Run: run{1, 2, 1, 2}})
	if !p.believes() {
		t.Error("it does not believe after a run has begun")
	}
	p.take(message{Kind: ended, Run: run{1, 2, 5, 6}})
	if p.believes() {
		t.Error("it believes after the run has ended")
	}
	p.take(message{Kind: began, Run: run{8, 9, 8, 9}})
	p.take(message{Kind: lasts, Run: run{8, 9, 20, 21}})
	if !p.open || len(p.runs) != 2 || p.runs[0].LastAsked != 5 || p.runs[1].LastAnswered != 21 {
		t.Errorf("runs %v, open %v", p.runs, p.open)
	}
	p.take(message{Kind: failed, Error: "no such table"})
	if err := p.await(t.Context(), leads); err == nil || !strings.Contains(err.Error(), "no such table") {
		t.Errorf("error %v; want the candidate's", err)
	}
}

// samples lets a sampler ask with answers at made-up times: each question takes
// 2, and the next one comes 10 after the last.
func samples(answers ...bool) (said []message) {
	now := time.Duration(0)
	s := &sampler{
		now: func() time.Duration { now += 2; return now },
		out: func(m message) { said = append(said, m) },
	}
	for _, yes := range answers {
		s.leads = func() bool { return yes }
		s.sample()
		now += 6
	}
	s.stop()
	s.leads = func() bool { return false }
	s.sample() // too late
	return said
}

func TestSampler(t *testing.T) {
	// Asked at 2, 12, 22, …; answered at 4, 14, 24, ….
	for _, c := range []struct {
		answers []bool
		want    []message
	}{
		{[]bool{false, false}, nil},
		{[]bool{false, true, true, false}, []message{{Kind: began, Run: run{12, 14, 12, 14}}, {Kind: ended, Run: run{12, 14, 22, 24}}}},
		{[]bool{true, true, true}, []message{{Kind: began, Run: run{2, 4, 2, 4}}, {Kind: lasts, Run: run{2, 4, 22, 24}}}},
		{[]bool{true, false, true}, []message{
			{Kind: began, Run: run{2, 4, 2, 4}}, {Kind: ended, Run: run{2, 4, 2, 4}},
			{Kind: began, Run: run{22, 24, 22, 24}}, {Kind: lasts, Run: run{22, 24, 22, 24}},
		}},
	} {
		said := samples(c.answers...)
		if fmt.Sprint(said) != fmt.Sprint(c.want) {
			t.Errorf("%v: it says %v; want %v", c.answers, said, c.want)
		}
	}
}

// A library that blocks does not keep a candidate from telling what it knows.
func TestSamplerWhileTheLibraryBlocks(t *testing.T) {
	var said []message
	asked, answer, sampled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := &sampler{now: func() time.Duration { return 7 }, out: func(m message) { said = append(said, m) }, leads: func() bool { return true }}
	s.sample()
	s.leads = func() bool { close(asked); <-answer; return true }
	go func() { defer close(sampled); s.sample() }()
	<-asked
	stopped := make(chan struct{})
	go func() { defer close(stopped); s.stop() }()
	select {
	case <-stopped:
	case <-time.After(watchdog):
		t.Fatal("stop waits for the library")
	}
	if len(said) != 2 || said[1].Kind != lasts {
		t.Errorf("it says %v; want a run that lasts", said)
	}
	close(answer)
	<-sampled
	if len(said) != 2 {
		t.Errorf("it says %v after it was stopped", said[2:])
	}
}
