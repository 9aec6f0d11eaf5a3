package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/proof/child"
)

const (
	ttl       = 2 * time.Second
	hold      = ttl * 9 / 10  // H
	challenge = ttl * 11 / 10 // C
	stopGrace = 3 * time.Second
)

// A place is a store that a lane can freeze.
type place struct {
	name, url    string
	freeze, thaw func() error
	isolated     bool // its wrappers have --isolate
}

// enough is much longer than a handover takes on a machine that is busy with other things.
const enough = 5 * time.Minute

// A lane is an election with two wrappers, which only it breaks.
type lane struct {
	place
	program, self string
	election      string
	journal       journal
	wrappers      [2]*wrapper
	broken        []string // what was not as promised
	late          []string // by no more than the machine stood still
	flags         []string
	log           *os.File
}

// A wrapper is elector run.
type wrapper struct {
	*exec.Cmd
	exited chan struct{}
	end    time.Duration // since boot, once exited
}

// command is elector run of a member.
func (l *lane) command(ctx context.Context, role string, flags ...string) *exec.Cmd {
	args := append([]string{"run", l.election}, flags...)
	c := exec.CommandContext(ctx, l.program, append(args, "--", l.self, memberArgument, l.journal.path, role)...)
	c.Env = append(os.Environ(), "ELECTOR_URL="+l.url)
	c.Stdout, c.Stderr = l.log, l.log
	return c
}

// elector runs a command that ends by itself.
func (l *lane) elector(ctx context.Context, args ...string) error {
	c := exec.CommandContext(ctx, l.program, args...)
	c.Env = append(os.Environ(), "ELECTOR_URL="+l.url)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("elector %s: %w: %s", args[0], err, out)
	}
	return nil
}

func (l *lane) start(ctx context.Context) (*wrapper, error) {
	return watched(l.command(ctx, "command", append([]string{"--stop-grace", stopGrace.String()}, l.flags...)...))
}

func watched(c *exec.Cmd) (*wrapper, error) {
	if err := child.Start(c); err != nil {
		return nil, err
	}
	w := &wrapper{Cmd: c, exited: make(chan struct{})}
	go func() {
		c.Wait()
		w.end = clock.Shared()
		close(w.exited)
	}()
	return w, nil
}

func (w *wrapper) gone() bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// A leader is what runs now.
type leader struct {
	wrapper           *wrapper
	guardian, command int
	term              term
}

// leads waits until both wrappers run, one of them leads with a token above after,
// and its whole family is alive.
func (l *lane) leads(ctx context.Context, after uint64) (leader, error) {
	patience := time.Now().Add(enough)
	for ctx.Err() == nil && time.Now().Before(patience) {
		for i, w := range l.wrappers {
			if w == nil || w.gone() {
				var err error
				if l.wrappers[i], err = l.start(ctx); err != nil {
					return leader{}, err
				}
			}
		}
		terms, err := l.journal.read()
		if err != nil {
			return leader{}, err
		}
		if len(terms) > 0 {
			t := terms[len(terms)-1]
			table, err := child.Table()
			if err != nil {
				return leader{}, err
			}
			parents := map[int]int{}
			for _, p := range table {
				parents[p.PID] = p.Parent
			}
			// The term's own ids are those of its PID namespace.
			if t.token > after && len(t.pids) == 3 && clock.Shared()-t.last < 500*time.Millisecond {
				for command, guardian := range parents {
					for _, w := range l.wrappers {
						if guardian != 0 && parents[guardian] == w.Process.Pid && isMember(command, "command") && hasToken(command, t.token) {
							return leader{w, guardian, command, t}, nil
						}
					}
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return leader{}, errors.Join(fmt.Errorf("no leader on %s within %v", l.name, enough), context.Cause(ctx))
}

// commandOf is another process of the leader's term.
func commandOf(l *lane, at leader) *exec.Cmd {
	c := exec.Command(l.self, memberArgument, l.journal.path, "daemon")
	c.Env = append(os.Environ(), fmt.Sprintf("ELECTOR_TOKEN=%d", at.term.token))
	return c
}

func isMember(pid int, role string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	args := splitNul(line)
	return err == nil && len(args) == 4 && args[3] == role
}

// hasToken reports whether a process was started in a term.
func hasToken(pid int, token uint64) bool {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.Contains(splitNul(content), fmt.Sprintf("ELECTOR_TOKEN=%d", token))
}

// A fault breaks the leader. It returns the time by which none of the leader's
// family may be alive, 0 if that is when the wrapper has ended.
type fault struct {
	name   string
	do     func(context.Context, *lane, leader) (by time.Duration, err error)
	undone func(*lane, leader) error

	isolated bool // only --isolate covers it
}

var faults = []fault{
	{"store frozen", func(_ context.Context, l *lane, _ leader) (time.Duration, error) {
		return clock.Shared() + hold, l.freeze()
	}, func(l *lane, _ leader) error { return l.thaw() }, false},
	{"store frozen, guardian stopped", func(_ context.Context, l *lane, at leader) (time.Duration, error) {
		err := l.freeze()
		return clock.Shared() + hold, errors.Join(err, syscall.Kill(at.guardian, syscall.SIGSTOP))
	}, func(l *lane, _ leader) error { return l.thaw() }, false},
	{"wrapper stopped", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		err := child.Freeze(at.wrapper.Process.Pid)
		return clock.Shared() + hold, err
	}, func(_ *lane, at leader) error { return child.Thaw(at.wrapper.Process.Pid) }, false},
	{"wrapper told to stop", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		return 0, at.wrapper.Process.Signal(syscall.SIGTERM)
	}, nil, false},
	{"wrapper told to stop, then stopped", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		err := at.wrapper.Process.Signal(syscall.SIGTERM)
		time.Sleep(100 * time.Millisecond) // for the order to reach the guardian
		err = errors.Join(err, child.Freeze(at.wrapper.Process.Pid))
		return clock.Shared() + hold, err
	}, func(_ *lane, at leader) error { return child.Thaw(at.wrapper.Process.Pid) }, false},
	{"paused, and resumed", func(ctx context.Context, l *lane, _ leader) (time.Duration, error) {
		err := l.elector(ctx, "pause", l.election, "--reason", "a migration", "--wait", "30s")
		return clock.Shared(), err
	}, func(l *lane, at leader) error {
		terms, err := l.journal.read()
		for _, t := range terms {
			if t.token > at.term.token {
				l.broken = append(l.broken, fmt.Sprintf("%s: a command runs with token %d, and the election is paused", l.name, t.token))
			}
		}
		return errors.Join(err, l.elector(context.Background(), "resume", l.election))
	}, false},
	{"wrapper killed", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		err := at.wrapper.Process.Kill()
		return clock.Shared() + hold, err
	}, nil, false},
	{"command killed", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		return 0, syscall.Kill(at.command, syscall.SIGKILL)
	}, nil, false},
	{"guardian killed", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		return 0, syscall.Kill(at.guardian, syscall.SIGKILL)
	}, nil, false},
	{"wrapper stopped, guardian killed", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		err := child.Freeze(at.wrapper.Process.Pid)
		return clock.Shared() + hold, errors.Join(err, syscall.Kill(at.guardian, syscall.SIGKILL))
	}, func(_ *lane, at leader) error { return child.Thaw(at.wrapper.Process.Pid) }, true},
	{"wrapper and guardian killed", func(_ context.Context, _ *lane, at leader) (time.Duration, error) {
		err := at.wrapper.Process.Kill()
		return clock.Shared() + hold, errors.Join(err, syscall.Kill(at.guardian, syscall.SIGKILL))
	}, nil, true},
}

// play breaks the leader and judges what comes of it.
func (l *lane) play(ctx context.Context, f fault) error {
	at, err := l.leads(ctx, 0)
	if err != nil {
		return err
	}
	stop := standstill()
	by, err := f.do(ctx, l, at)
	if err == nil {
		if by != 0 {
			sleepUntil(ctx, by+challenge-hold+200*time.Millisecond)
		} else {
			select {
			case <-at.wrapper.exited:
				by = at.wrapper.end
			case <-time.After(stopGrace + 20*time.Second):
				err = errors.New("the wrapper does not end")
			case <-ctx.Done():
			}
		}
	}
	still := stop()
	if f.undone != nil {
		err = errors.Join(err, f.undone(l, at))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	next, err := l.leads(ctx, at.term.token)
	if err != nil {
		return fmt.Errorf("after %s: %w", f.name, err)
	}
	terms, err := l.journal.read()
	if err != nil {
		return err
	}
	for _, t := range terms {
		if late := t.last - by; t.token == at.term.token && late > 0 {
			text := fmt.Sprintf("%s, %s: alive %v after it had to be dead; the machine stood still for %v", l.name, f.name, late.Round(time.Millisecond), still.Round(time.Millisecond))
			if late > still {
				l.broken = append(l.broken, text)
			} else {
				l.late = append(l.late, text)
			}
		}
		if t.token < next.term.token && t.last > next.term.first {
			l.broken = append(l.broken, fmt.Sprintf("%s, %s: descendants of two terms alive at once for %v", l.name, f.name, (t.last-next.term.first).Round(time.Millisecond)))
		}
	}
	return nil
}

// standstill measures how late this process wakes up: what is late by more is not the
// machine's fault.
func standstill() (stop func() time.Duration) {
	done, longest := make(chan bool), make(chan time.Duration)
	go func() {
		var most time.Duration
		for {
			began := time.Now()
			select {
			case <-time.After(5 * time.Millisecond):
				most = max(most, time.Since(began)-5*time.Millisecond)
			case <-done:
				longest <- most
				return
			}
		}
	}()
	return func() time.Duration { close(done); return <-longest }
}

func sleepUntil(ctx context.Context, at time.Duration) {
	select {
	case <-time.After(at - clock.Shared()):
	case <-ctx.Done():
	}
}

// end stops the wrappers, and what a broken one has left.
func (l *lane) end() {
	for _, w := range l.wrappers {
		if w != nil && !w.gone() {
			w.Process.Signal(syscall.SIGTERM)
			w.Process.Signal(syscall.SIGCONT)
			time.Sleep(20 * time.Millisecond)
			w.Process.Signal(syscall.SIGTERM)
		}
	}
	for _, w := range l.wrappers {
		if w != nil {
			select {
			case <-w.exited:
			case <-time.After(15 * time.Second):
				w.Process.Kill()
				<-w.exited
			}
		}
	}
	l.journal.sweep()
	l.log.Close()
}

// newLane makes a lane with a journal in dir.
func newLane(p place, program, self, dir string, number int) (*lane, error) {
	l := &lane{flags: []string{"--ttl", ttl.String()}, place: p, program: program, self: self, election: fmt.Sprintf("lane%d", number), journal: journal{path: filepath.Join(dir, fmt.Sprintf("journal%d", number))}}
	var err error
	l.log, err = os.Create(filepath.Join(dir, fmt.Sprintf("log%d", number)))
	return l, err
}
