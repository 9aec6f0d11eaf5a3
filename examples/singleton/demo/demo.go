// Package demo shows what package elector promises: it runs the singleton as
// real processes on one file store, kills, stops and replaces leaders, and
// judges what the processes report.
//
// It fails for what is wrong: two leases valid at once, a stale write accepted,
// no successor. On a busy machine everything takes longer. That is no failure:
// the demo reports it, and for how long the machine itself stood still.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/examples/singleton/protected"
	"github.com/elector-go/elector/internal/clock"
)

// Run plays the demo with this very program as the children, prints a time line
// and a summary, and returns an error if anything is wrong. It ends early with
// ctx. Call it on the goroutine of main.
func Run(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	print := newPrinter(os.Stdout)
	d := &demo{program: self, rules: rulesOf(backends.Description{}, true), print: print}
	v, err := d.perform(ctx, d.play)
	if err != nil {
		return err
	}
	if d.Err == nil {
		v.judgeStory(d.History)
	}
	print.verdict(v)
	if len(v.problems) > 0 {
		return errors.New("not everything was as promised")
	}
	return nil
}

// perform plays something from beginning to end and judges what must be so
// whatever was played. It returns an error only if there is nothing to judge.
func (d *demo) perform(ctx context.Context, play func()) (*verdict, error) {
	dir, err := os.MkdirTemp("", "singleton-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	d.dir, d.children = dir, map[string]*child{}
	d.Take, d.Patience = d.take, 10*d.rules.ttl
	if err := d.Perform(ctx, play); err != nil {
		return nil, err
	}
	journal, err := (&protected.File{Path: filepath.Join(dir, "invoices.txt")}).Read(elector.MaxToken)
	if err != nil {
		return nil, err
	}
	d.History = stage.InOrder(d.History)
	v := judge(d.rules, &d.Pulse, d.History, journal)
	if d.Err != nil {
		v.problem("%v", d.Err)
	}
	return v, nil
}

// demo is the state of the play. One goroutine owns it.
type demo struct {
	stage.Stage
	program string // the singleton
	url     string // of the store; empty for files in dir
	rules   rules
	print   *printer
	dir     string

	children map[string]*child
	leader   string        // empty once we have done something to it, or its lease has ended
	token    elector.Token // of that leader
	writes   int           // of that leader
	hold     bool          // the leader's writes wait until we allow them
}

type child struct {
	joined   bool   // has seen a leader, or was one
	ready    bool   // a write waits for us
	answered bool   // the journal has answered a write since the child was stopped
	lost     bool   // it lost its last lease
	ending   string // killed or terminated; empty while it shall live
	gone     bool
}

// play does one thing after the other and waits for what must come of it. After
// the first failure, which d.Err keeps, nothing more is done.
func (d *demo) play() {
	d.launch("A")
	d.Until("A leads and writes", d.leads)
	d.launch("B")
	d.launch("C")
	d.Until("one leads and two wait", func() bool { return d.leads() && d.joined("B", "C") })

	d.Act(killed, d.leader)
	d.Until("another process leads", d.leads)
	d.launch("D") // to have enough candidates
	d.Until("one leads and D waits", func() bool { return d.leads() && d.joined("D") })

	// Stop the leader between its Check and its write, let another one lead,
	// and let the first one write then. Stop it just after a renewal: during
	// one it may hold the lock of the file store, and then no process could lead
	// until it continues (see package backends/file).
	d.hold = true
	d.Until("the leader is about to write, and has just renewed", d.holdsAndRenewed)
	late := d.leader
	at := d.Act(stopped, late)
	d.hold = false
	d.Until("another process leads", func() bool { return d.leads() && clock.Shared()-at > d.rules.ttl })
	d.permit(late)
	d.Act(continued, late)
	d.Until("the journal has answered the late write", func() bool { return d.children[late].answered })

	d.Until("a process leads", d.leads)
	last := d.leader
	d.Act(terminated, last)
	d.Until("the election is handed over", func() bool { return d.leads() && d.children[last].gone })

	// The end: the leader goes last, so that no process follows it.
	last = d.leader
	for name, c := range d.children {
		if name != last && !c.gone {
			d.Act(terminated, name)
		}
	}
	d.Until("the candidates have ended", func() bool { return d.gone() == len(d.children)-1 })
	d.Act(terminated, last)
	d.Until("all have ended", func() bool { return d.gone() == len(d.children) })
}

// leads reports whether there is a leader that nothing was done to yet, and
// has written a little.
func (d *demo) leads() bool { return d.leader != "" && d.writes >= 3 }

// joined reports whether the processes take part in the election.
func (d *demo) joined(names ...string) bool {
	for _, name := range names {
		if !d.children[name].joined {
			return false
		}
	}
	return true
}

// holdsAndRenewed reports whether a write of the leader waits for us, and the
// latest event is that its lease was renewed.
func (d *demo) holdsAndRenewed() bool {
	latest := d.History[len(d.History)-1]
	return latest.Kind == renewed && latest.Process == d.leader && d.children[d.leader].ready
}

func (d *demo) gone() (n int) {
	for _, c := range d.children {
		if c.gone {
			n++
		}
	}
	return n
}

// launch starts a child.
func (d *demo) launch(name string) {
	cmd := exec.Command(d.program, d.dir)
	cmd.Env = append(os.Environ(), idVariable+"="+name, ttlVariable+"="+d.rules.ttl.String(), "ELECTOR_URL="+d.url)
	d.children[name] = &child{}
	d.Launch(name, cmd)
}

// take takes note of an event, and allows a write that need not wait.
func (d *demo) take(e Event) {
	c := d.children[e.Process]
	switch e.Kind {
	case waits:
		c.joined = true
	case leads:
		c.joined, c.lost = true, false
		d.leader, d.token, d.writes = e.Process, e.Token, 0
	case ended:
		c.lost = e.Detail == lost
		if d.leader == e.Process && d.token == e.Token {
			d.leader = ""
			if c.ready { // it was held
				d.permit(e.Process)
			}
		}
	case about:
		c.ready = true
		if !d.holds(e.Process) {
			d.permit(e.Process)
		}
	case wrote, refused, failed:
		c.answered = true
		if e.Kind == wrote && e.Process == d.leader {
			d.writes++
		}
	case stopped:
		c.answered = false
	case killed, terminated:
		c.ending = e.Kind
	case exited:
		c.gone = true
		// Run returns an error when the lease was lost after it was told to stop.
		if c.ending == "" || c.ending == terminated && e.Detail != "" && !c.lost {
			d.Err = fmt.Errorf("%s should not have ended like this: %s", e.Process, cmp.Or(e.Detail, "of its own accord"))
		}
	}
	if d.leader == e.Process && (e.Kind == killed || e.Kind == stopped || e.Kind == terminated) {
		d.leader = ""
	}
	d.print.event(e.Boot-d.Start, e, d.writes == 1, d.holds(e.Process))
}

// holds reports whether the writes of a child wait until we allow them.
func (d *demo) holds(name string) bool { return d.hold && name == d.leader }

// permit allows a child the write that it is about to do. A child that is
// stopped finds the permission when it is continued.
func (d *demo) permit(name string) {
	if d.Err != nil {
		return
	}
	d.children[name].ready = false
	d.Tell(name, "\n")
}
