package main

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/internal/clock"
)

// A step is a change of members that the demo makes.
type step struct {
	what   string
	begun  time.Duration
	before string // the strip
}

// play does one thing after the other and waits for what must come of it. After
// the first failure, which d.Err keeps, nothing more is done.
func (d *demo) play(ctx context.Context) {
	feeding, stop := context.WithCancel(ctx)
	defer stop()
	fed := make(chan struct{})
	go func() { defer close(fed); d.ledger.feed(feeding, every) }()

	d.begin("Three members start")
	d.launch("A")
	d.launch("B")
	d.launch("C")
	d.settle()

	d.begin("D joins")
	d.launch("D")
	d.settle()

	d.begin("B leaves: SIGTERM")
	d.Act(stage.Terminated, "B")
	d.settle()
	d.exits("B")

	d.begin("C is stopped between its check and its request: SIGSTOP")
	d.holdUp("C")
	d.step.begun = d.Act(stage.Stopped, "C")
	d.held = len(d.members["C"].waits)
	d.settle()

	d.begin("C goes on: SIGCONT")
	d.Tell("C", let+"\n") // which it finds when it goes on
	d.Act(stage.Continued, "C")
	d.Until("the ledger has answered C's late requests", func() bool { return d.members["C"].answers >= d.held })
	d.sayRefused("C")
	d.settle()

	d.begin("A is killed: SIGKILL")
	d.Act(stage.Killed, "A")
	d.settle()

	d.begin("E takes its place")
	d.launch("E")
	d.settle()

	d.begin("All leave")
	stop()
	<-fed
	d.Until("all items were counted", d.done)
	for _, name := range d.living() {
		d.Act(stage.Terminated, name)
	}
	for name := range d.members {
		d.exits(name)
	}
}

// begin begins a step.
func (d *demo) begin(what string) {
	if d.Err != nil {
		return
	}
	d.step = step{what, clock.Shared(), d.strip()}
	d.print.begin(what)
}

// sayRefused says how many late requests of a member the ledger has refused.
func (d *demo) sayRefused(name string) {
	n := 0
	for _, e := range d.History {
		if e.Kind == refused && e.Process == name {
			n++
		}
	}
	if d.Err == nil {
		d.print.line(clock.Shared()-d.Start, d.strip(), d.print.Paint(stage.Red, fmt.Sprintf("the ledger REFUSES %d late requests of %s", n, name)))
	}
}

// settle waits until the members that live own all partitions, evenly, and all of
// them count items, and then says what the step took.
func (d *demo) settle() {
	d.Until(fmt.Sprintf("%v share the partitions evenly, and count", d.living()), func() bool { return d.shared() && d.counting() })
	if d.Err == nil {
		d.print.settled(sum(d.History, d.step, d.strip()), d.Start, d.strip())
	}
}

// holdUp lets the member's requests wait after the check of their lease, one for
// each partition, until it has just renewed its seat. During a renewal it may hold
// the lock of the file store: stopped then, it would keep all others out (see
// package backends/file).
func (d *demo) holdUp(name string) {
	m := d.members[name]
	for d.Err == nil {
		clear(m.waits)
		m.loses = false
		d.Tell(name, hold+"\n")
		d.Until("requests wait in all partitions of "+name, func() bool {
			if m.loses { // on a busy machine; once more then
				return true
			}
			last := d.History[len(d.History)-1]
			return d.shared() && len(m.waits) == len(d.of(name)) && last.Kind == renewed && last.Process == name
		})
		if !m.loses {
			return
		}
		d.Tell(name, let+"\n")
		d.Until("the members share the partitions again", d.shared)
	}
}

// exits waits until a process has ended.
func (d *demo) exits(name string) {
	d.Until(name+" has ended", func() bool { return d.members[name].state == stage.Exited })
}

// done reports whether all items were counted.
func (d *demo) done() bool {
	items, counted := d.ledger.content()
	for p := range items {
		if len(counted[p]) < len(items[p]) {
			return false
		}
	}
	return true
}
