package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/examples/internal/stage"
)

const (
	ttl      = 2 * time.Second       // short, to keep the demo short
	every    = 20 * time.Millisecond // how often an item comes
	patience = 30 * time.Second      // for each thing that the demo waits for
	longest  = 2 * time.Minute       // for all of them
)

// perform plays the demo with this very program as the children, prints what
// happens and a summary, and returns an error if anything is wrong.
func perform(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "partitions-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	d := &demo{
		program: program,
		store:   (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(),
		members: map[string]*member{},
		ledger:  newLedger(),
		print:   newPrinter(os.Stdout),
	}
	var stop func() error
	if d.address, stop, err = d.ledger.serve(); err != nil {
		return err
	}
	d.Take, d.Patience = d.take, patience
	playing, cancel := context.WithTimeoutCause(ctx, longest, fmt.Errorf("the demo was not over after %v: is the machine very busy?", longest))
	defer cancel()
	err = errors.Join(d.Perform(playing, func() { d.play(playing) }), stop())
	if err != nil {
		return err
	}
	items, counted := d.ledger.content()
	v := judge(stage.InOrder(d.History), items, counted)
	if d.Err != nil {
		v.problem("%v", d.Err)
	} else {
		v.judgeStory(d.History, d.held)
	}
	d.print.verdict(v)
	if len(v.problems) > 0 {
		return errors.New("not everything was as promised")
	}
	return nil
}

// demo is the state of the play. One goroutine owns it.
type demo struct {
	stage.Stage
	program string // the worker
	store   string // its ELECTOR_URL
	address string // of the ledger
	ledger  *ledger
	print   *printer
	step    step
	held    int // requests that waited in the member that was stopped

	members map[string]*member
	owners  [partitions][]claim // with the latest last; more than one while a partition moves
}

// A claim is a member's, from the start of its worker until that has returned.
type claim struct {
	member string
	event  stage.Event
}

type member struct {
	state   string       // what was done to it last: started, stopped, …; exited
	waits   map[int]bool // the partitions whose requests wait for us
	loses   bool         // a lease has ended since it was told to hold its requests
	answers int          // to its requests since it was stopped
	lost    bool         // it lost the lease of its seat while it was to leave
}

// lives reports whether the member works and is meant to.
func (m *member) lives() bool { return m.state == stage.Started || m.state == stage.Continued }

// runs reports whether the process can do something.
func (m *member) runs() bool { return m.lives() || m.state == stage.Terminated }

// launch starts a member.
func (d *demo) launch(name string) {
	cmd := exec.Command(d.program, "worker", d.address)
	cmd.Env = append(os.Environ(), idVariable+"="+name, ttlVariable+"="+ttl.String(), "ELECTOR_URL="+d.store)
	d.members[name] = &member{waits: map[int]bool{}}
	d.Launch(name, cmd)
}

// take takes note of an event.
func (d *demo) take(e stage.Event) {
	m := d.members[e.Process]
	switch e.Kind {
	case owns:
		d.release(e, func(c claim) bool { return c.member == e.Process || !d.members[c.member].runs() })
		d.owners[e.Partition] = append(d.owners[e.Partition], claim{e.Process, e})
		slices.SortStableFunc(d.owners[e.Partition], func(a, b claim) int { return cmp.Compare(a.event.Boot, b.event.Boot) })
	case gaveUp:
		d.release(e, func(c claim) bool { return c.member == e.Process && c.event.Token == e.Token })
	case about:
		m.waits[e.Partition] = true
	case told:
		m.loses = true
	case counted, refused, failed:
		m.answers++
	case lost:
		m.lost = true
	case stage.Started, stage.Stopped, stage.Continued, stage.Terminated, stage.Killed:
		if m.state = e.Kind; e.Kind == stage.Stopped {
			m.answers = 0
		}
	case stage.Exited:
		// Run returns an error when the lease was lost after it was told to stop.
		if m.runs() && (m.lives() || e.Detail != "" && !m.lost) {
			d.Err = fmt.Errorf("%s should not have ended like this: %s", e.Process, cmp.Or(e.Detail, "of its own accord"))
		}
		m.state = e.Kind
	}
	d.print.event(e, d.Start, d.strip())
}

// release drops claims on the partition of an event.
func (d *demo) release(e stage.Event, is func(claim) bool) {
	d.owners[e.Partition] = slices.DeleteFunc(d.owners[e.Partition], is)
}

// living returns the members that work and are meant to.
func (d *demo) living() (names []string) {
	for name, m := range d.members {
		if m.lives() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// shared reports whether the members that live own all partitions, evenly, and no
// other process one.
func (d *demo) shared() bool {
	has := map[string]int{}
	for _, claims := range d.owners {
		if len(claims) != 1 {
			return false
		}
		has[claims[0].member]++
	}
	living := d.living()
	for _, name := range living {
		if has[name] < partitions/len(living) || has[name] > (partitions-1)/len(living)+1 {
			return false
		}
		delete(has, name)
	}
	return len(has) == 0
}

// counting reports whether the owner of each partition has counted an item there.
func (d *demo) counting() bool {
	for p, claims := range d.owners {
		if _, token := d.ledger.counts(p); len(claims) != 1 || token != claims[0].event.Token {
			return false
		}
	}
	return true
}

// of returns the partitions of a member.
func (d *demo) of(name string) (all []int) {
	for p, claims := range d.owners {
		if slices.ContainsFunc(claims, func(c claim) bool { return c.member == name }) {
			all = append(all, p)
		}
	}
	return all
}

// strip has a letter for each partition: its owner, in small letters if that was
// stopped or killed, or a dot.
func (d *demo) strip() string {
	var text strings.Builder
	for _, claims := range d.owners {
		letter := "."
		for _, c := range claims {
			switch {
			case d.members[c.member].runs():
				letter = c.member
			case letter == ".":
				letter = strings.ToLower(c.member)
			}
		}
		text.WriteString(letter)
	}
	return text.String()
}
