package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/proof/child"
)

// An exception is what elector run cannot cover, and its help says so.
type exception struct {
	name string
	do   func(context.Context, *lane, leader) error
	undo func(*lane, leader) error
	slow bool
}

var exceptions = []exception{
	{"guardian and run both stopped", func(_ context.Context, _ *lane, at leader) error {
		return errors.Join(child.Freeze(at.wrapper.Process.Pid), syscall.Kill(at.guardian, syscall.SIGSTOP))
	}, func(_ *lane, at leader) error {
		return errors.Join(child.Thaw(at.wrapper.Process.Pid), syscall.Kill(at.guardian, syscall.SIGCONT))
	}, false},
	{"guardian and run both killed", func(_ context.Context, _ *lane, at leader) error {
		return errors.Join(at.wrapper.Process.Kill(), syscall.Kill(at.guardian, syscall.SIGKILL))
	}, nil, false},
	{"guardian killed, run stopped", func(_ context.Context, _ *lane, at leader) error {
		return errors.Join(child.Freeze(at.wrapper.Process.Pid), syscall.Kill(at.guardian, syscall.SIGKILL))
	}, func(_ *lane, at leader) error { return child.Thaw(at.wrapper.Process.Pid) }, false},
	{"started by another program", func(ctx context.Context, l *lane, at leader) error {
		other := commandOf(l, at) // its parent is the demo
		if err := child.Start(other); err != nil {
			return err
		}
		go other.Wait()
		time.Sleep(200 * time.Millisecond) // it stamps
		return at.wrapper.Process.Kill()
	}, nil, false},
	{"record deleted by hand", func(ctx context.Context, l *lane, at leader) error {
		// The waiting process has seen the record; a fresh one has not.
		for _, w := range l.wrappers {
			if w != at.wrapper {
				w.Process.Kill()
				<-w.exited
			}
		}
		if err := child.Freeze(at.wrapper.Process.Pid); err != nil {
			return err
		}
		return os.Remove(filepath.Join(l.url[len("file://"):], l.election+".json"))
	}, func(_ *lane, at leader) error { return child.Thaw(at.wrapper.Process.Pid) }, true},
}

// exceptions shows each: descendants of two terms are alive at once.
func (d *demo) exceptions(ctx context.Context) error {
	lines := []string{"\nNot covered, as elector help run says (a guardian that is killed: without --isolate):"}
	for i, x := range exceptions {
		number := 100 + i
		p, err := folder(filepath.Join(d.dir, fmt.Sprintf("exception%d", i)), number)
		if err != nil {
			return err
		}
		l, err := newLane(p, d.program, d.self, d.dir, number)
		if err != nil {
			return err
		}
		if x.slow {
			l.flags = []string{"--ttl", (5 * ttl).String()} // a process starts meanwhile
		}
		longest, err := l.except(ctx, x)
		l.end()
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", x.name, err, l.tail())
		}
		lines = append(lines, fmt.Sprintf("  %-32s two terms alive at once for %v", x.name, longest.Round(time.Millisecond)))
		if longest <= 0 {
			d.note(fmt.Sprintf("the help names an exception that is none: %s", x.name))
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, line := range lines {
		fmt.Println(line)
	}
	fmt.Println("  not shown here: processes in state D, of another user, or in a container")
	return nil
}

func (l *lane) except(ctx context.Context, x exception) (time.Duration, error) {
	at, err := l.leads(ctx, 0)
	if err != nil {
		return 0, err
	}
	if err := x.do(ctx, l, at); err != nil {
		return 0, err
	}
	next, err := l.leads(ctx, at.term.token)
	if err == nil {
		sleepUntil(ctx, clock.Shared()+100*time.Millisecond)
	}
	if x.undo != nil {
		err = errors.Join(err, x.undo(l, at))
	}
	if err != nil {
		return 0, err
	}
	terms, err := l.journal.read()
	if err != nil {
		return 0, err
	}
	for _, t := range terms {
		if t.token == at.term.token {
			return t.last - next.term.first, nil
		}
	}
	return 0, errors.New("the term is not in the journal")
}

// note records what is not as promised.
func (d *demo) note(what string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.broken = append(d.broken, what)
}
