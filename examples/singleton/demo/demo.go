// Package demo shows what package elector promises: it runs the singleton as
// real processes on one file store, kills, stops and replaces leaders, and
// judges what they tell.
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
// and a summary, and returns an error unless everything happened as told. It
// ends early with ctx. Call it on the goroutine of main.
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
	v.judgeStory(d.history)
	print.verdict(v)
	if len(v.problems) > 0 {
		return errors.New("not everything happened as told")
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
	v := judge(d.rules, d.history, journal)
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
	readers sync.WaitGroup
	history []Event
	err     error // the first failure

	children map[string]*child
	leader   string // who told last that it leads; empty once we have done something to it
	writes   int    // of that leader
	held     string // whose writes wait until we allow them
}

type child struct {
	process  *os.Process
	stdin    io.Writer
	waits    bool   // has seen a leader
	ready    bool   // a write waits for us
	answered bool   // the journal has answered a write since the child was stopped
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
	d.until("B and C wait", d.waiting("B", "C"))

	d.act(killed, d.leader)
	d.until("another process leads", d.leads)
	d.launch("D") // to have enough candidates
	d.until("D waits", d.waiting("D"))

	// Stop the leader between its Check and its write, let another one lead,
	// and let the first one write then.
	late := d.leader
	d.held = late
	d.until("the leader is about to write", func() bool { return d.children[late].ready })
	at := d.act(stopped, late)
	d.until("another process leads", func() bool { return d.leads() && clock.Shared()-at > d.rules.ttl })
	d.held = ""
	d.permit(late)
	d.act(continued, late)
	d.until("the journal has answered the late write", func() bool { return d.children[late].answered })

	last := d.leader
	d.act(terminated, last)
	d.until("the election is handed over", func() bool { return d.leads() && d.children[last].gone })

	// The end: the leader goes last, so that nobody follows it.
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

func (d *demo) waiting(names ...string) func() bool {
	return func() bool {
		for _, name := range names {
			if !d.children[name].waits {
				return false
			}
		}
		return true
	}
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
	d.readers.Go(func() {
		e := Event{Process: name, Kind: exited}
		err := readEvents(name, stdout, d.send)
		if err != nil {
			cmd.Process.Kill() // nobody listens to it any more
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

// until takes what the children tell until something is so.
func (d *demo) until(what string, so func() bool) {
	patience := 10 * d.rules.ttl
	watchdog := time.NewTimer(patience)
	defer watchdog.Stop()
	for d.err == nil && !so() {
		select {
		case e := <-d.events:
			d.take(e)
		case <-watchdog.C:
			d.err = fmt.Errorf("waited %v in vain until %s", patience, what)
		case <-d.ctx.Done():
			d.err = context.Cause(d.ctx)
		}
	}
}

// take takes note of an event, and allows a write that need not wait.
func (d *demo) take(e Event) {
	d.history = append(d.history, e)
	c := d.children[e.Process]
	switch e.Kind {
	case waits:
		c.waits = true
	case leads:
		d.leader, d.writes = e.Process, 0
	case about:
		c.ready = true
		if d.held != e.Process {
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
		if c.ending == "" || c.ending == terminated && e.Detail != "" {
			d.err = fmt.Errorf("%s should not have ended like this: %s", e.Process, cmp.Or(e.Detail, "of its own accord"))
		}
	}
	if d.leader == e.Process && (e.Kind == killed || e.Kind == stopped || e.Kind == terminated) {
		d.leader = ""
	}
	d.print.event(e.Boot-d.start, e, d.writes == 1, d.held == e.Process)
}

// permit lets a child write that has told that it is about to. A child that is
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
	d.readers.Wait()
}
