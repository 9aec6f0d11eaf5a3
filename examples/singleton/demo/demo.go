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
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
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
	if d.err == nil {
		v.judgeStory(d.history)
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
	if signals == nil {
		return nil, errors.New("the demo stops and continues processes with signals, which " + runtime.GOOS + " does not have")
	}
	// A child dies with the thread that started it, so that thread must stay.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	dir, err := os.MkdirTemp("", "singleton-demo-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)

	playing, cancel := context.WithCancel(ctx)
	d.ctx, d.dir, d.start = playing, dir, clock.Shared()
	d.events, d.children = make(chan Event), map[string]*child{}
	d.helpers.Go(func() { d.pulse.run(playing) })
	play()
	cancel()
	d.end()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	journal, err := (&protected.File{Path: filepath.Join(dir, "invoices.txt")}).Read(elector.MaxToken)
	if err != nil {
		return nil, err
	}
	d.history = inOrder(d.history)
	v := judge(d.rules, &d.pulse, d.history, journal)
	if d.err != nil {
		v.problem("%v", d.err)
	}
	return v, nil
}

// demo is the state of the play. One goroutine owns it.
type demo struct {
	program string // the singleton
	url     string // of the store; empty for files in dir
	rules   rules
	print   *printer

	ctx     context.Context
	dir     string
	start   time.Duration
	events  chan Event
	helpers sync.WaitGroup
	history []Event
	err     error // the first failure
	pulse   pulse

	children map[string]*child
	leader   string        // empty once we have done something to it, or its lease has ended
	token    elector.Token // of that leader
	writes   int           // of that leader
	hold     bool          // the leader's writes wait until we allow them
}

type child struct {
	process  *os.Process
	stdin    io.Writer
	joined   bool   // has seen a leader, or was one
	ready    bool   // a write waits for us
	answered bool   // the journal has answered a write since the child was stopped
	lost     bool   // it lost its last lease
	ending   string // killed or terminated; empty while it shall live
	gone     bool
}

// play does one thing after the other and waits for what must come of it. After
// the first failure, which d.err keeps, nothing more is done.
func (d *demo) play() {
	d.launch("A")
	d.until("A leads and writes", d.leads)
	d.launch("B")
	d.launch("C")
	d.until("one leads and two wait", func() bool { return d.leads() && d.joined("B", "C") })

	d.act(killed, d.leader)
	d.until("another process leads", d.leads)
	d.launch("D") // to have enough candidates
	d.until("one leads and D waits", func() bool { return d.leads() && d.joined("D") })

	// Stop the leader between its Check and its write, let another one lead,
	// and let the first one write then. Stop it just after a renewal: during
	// one it may hold the lock of the file store, and then nobody could lead
	// until it continues (see package backends/file).
	d.hold = true
	d.until("the leader is about to write, and has just renewed", d.holdsAndRenewed)
	late := d.leader
	at := d.act(stopped, late)
	d.hold = false
	d.until("another process leads", func() bool { return d.leads() && clock.Shared()-at > d.rules.ttl })
	d.permit(late)
	d.act(continued, late)
	d.until("the journal has answered the late write", func() bool { return d.children[late].answered })

	d.until("a process leads", d.leads)
	last := d.leader
	d.act(terminated, last)
	d.until("the election is handed over", func() bool { return d.leads() && d.children[last].gone })

	// The end: the leader goes last, so that no process follows it.
	last = d.leader
	for name, c := range d.children {
		if name != last && !c.gone {
			d.act(terminated, name)
		}
	}
	d.until("the candidates have ended", func() bool { return d.gone() == len(d.children)-1 })
	d.act(terminated, last)
	d.until("all have ended", func() bool { return d.gone() == len(d.children) })
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
	latest := d.history[len(d.history)-1]
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
	if d.err != nil {
		return
	}
	cmd := exec.Command(d.program, d.dir)
	cmd.Env = append(os.Environ(), idVariable+"="+name, ttlVariable+"="+d.rules.ttl.String(), "ELECTOR_URL="+d.url)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = childAttributes()
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if d.err = errors.Join(err1, err2); d.err != nil {
		return
	}
	if d.err = cmd.Start(); d.err != nil {
		return
	}
	d.children[name] = &child{process: cmd.Process, stdin: stdin}
	d.take(Event{Process: name, Kind: started, Boot: clock.Shared(), Detail: fmt.Sprint(cmd.Process.Pid)})
	d.helpers.Go(func() {
		e := Event{Process: name, Kind: exited}
		err := readEvents(name, stdout, d.send)
		if err != nil {
			cmd.Process.Kill() // its events are not read any more
		}
		if err := errors.Join(err, cmd.Wait()); err != nil {
			e.Detail = err.Error()
		}
		e.Boot = clock.Shared()
		d.send(e)
	})
}

// send hands an event to the goroutine that plays, while there is one.
func (d *demo) send(e Event) {
	select {
	case d.events <- e:
	case <-d.ctx.Done():
	}
}

// act does something to a process and returns when.
func (d *demo) act(kind, name string) time.Duration {
	if d.err != nil {
		return 0
	}
	e := Event{Process: name, Kind: kind, Boot: clock.Shared()}
	d.take(e)
	d.err = d.children[name].process.Signal(signals[kind])
	return e.Boot
}

// until takes events until something is so. It waits for ten TTLs, in which the
// times at which the machine stood still do not count.
func (d *demo) until(what string, so func() bool) {
	begun, patience := clock.Shared(), 10*d.rules.ttl
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	for d.err == nil && !so() {
		select {
		case e := <-d.events:
			d.take(e)
		case <-watchdog.C:
			now := clock.Shared()
			still := d.pulse.between(begun, now).total
			if left := patience + still - (now - begun); left > 0 {
				watchdog.Reset(left)
				continue
			}
			d.err = fmt.Errorf("waited in vain until %s: for %v, and the %.2f s for which the machine stood still", what, patience, still.Seconds())
		case <-d.ctx.Done():
			d.err = context.Cause(d.ctx)
		}
	}
}

// take notes an event, and allows a write that need not wait.
func (d *demo) take(e Event) {
	d.history = append(d.history, e)
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
			d.err = fmt.Errorf("%s should not have ended like this: %s", e.Process, cmp.Or(e.Detail, "of its own accord"))
		}
	}
	if d.leader == e.Process && (e.Kind == killed || e.Kind == stopped || e.Kind == terminated) {
		d.leader = ""
	}
	d.print.event(e.Boot-d.start, e, d.writes == 1, d.holds(e.Process))
}

// holds reports whether the writes of a child wait until we allow them.
func (d *demo) holds(name string) bool { return d.hold && name == d.leader }

// permit allows a child the write that it is about to do. A child that is
// stopped finds the permission when it is continued.
func (d *demo) permit(name string) {
	if d.err != nil {
		return
	}
	c := d.children[name]
	c.ready = false
	c.stdin.Write([]byte{'\n'}) // a child that is gone is noticed elsewhere
}

// end ends what still runs, in whatever state, and waits for it.
func (d *demo) end() {
	for _, c := range d.children {
		c.process.Kill() // fails for those that are gone
	}
	d.helpers.Wait()
}
