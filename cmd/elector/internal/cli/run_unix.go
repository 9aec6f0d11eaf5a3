//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/cmd/elector/internal/guardian"
)

// guardianArgument makes this program the guardian.
const guardianArgument = "guardian-of-elector-run"

func guard() { guardian.Main() }

// A runner is elector run under way. One goroutine owns it.
type runner struct {
	*tool
	*runFlags
	name, path string
	argv       []string
	elector    *elector.Elector
	renewed    chan struct{}
	signals    chan os.Signal
	stopped    bool // told to stop
}

func (t *tool) run(ctx context.Context, name string, argv []string, f *runFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return notStarted(argv[0], err)
	}
	r := &runner{tool: t, runFlags: f, name: name, path: path, argv: argv, renewed: make(chan struct{}, 1), signals: make(chan os.Signal, 16)}
	o.Trace = &elector.Trace{Renewed: func(context.Context, elector.LeaseInfo) {
		select {
		case r.renewed <- struct{}{}:
		default:
		}
	}}
	signal.Notify(r.signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH)
	defer signal.Stop(r.signals)
	e, done, err := t.candidate(ctx, name, o)
	if err != nil {
		return err
	}
	r.elector = e
	code, err := r.terms(ctx)
	if code.survivors {
		return code.err // the process ends without telling the store
	}
	done()
	return err
}

// An ending is how a term ended.
type ending struct {
	survivors bool // of the command, which may still be alive
	err       error
}

// terms leads again and again.
func (r *runner) terms(ctx context.Context) (ending, error) {
	if _, err := daemon.SdNotify(false, daemon.SdNotifyReady); err != nil {
		r.say("telling systemd: %v", err)
	}
	for {
		lease, err := r.campaign(ctx)
		if lease == nil {
			return ending{}, err
		}
		status, end := r.term(ctx, lease)
		switch {
		case end.survivors, end.err != nil && !errors.Is(end.err, elector.ErrLost):
			return end, end.err
		case end.err != nil && r.once:
			return ending{}, exitCode{exitLost, end.err}
		case end.err != nil && !r.stopped:
			r.say("%v; campaigning again", oneLine(end.err))
		case r.restart && !r.stopped:
			r.say("the command ended with %d; campaigning again", status.ExitCode())
		case status.ExitCode() != 0:
			return ending{}, exitCode{code: status.ExitCode()}
		default:
			return ending{}, nil
		}
	}
}

// campaign returns no lease, and no error, if run is told to stop.
func (r *runner) campaign(ctx context.Context) (*elector.Lease, error) {
	ctx, cancel := contextOf(ctx, r.wait)
	defer cancel()
	type result struct {
		lease *elector.Lease
		err   error
	}
	won := make(chan result, 1)
	go func() {
		campaign := r.elector.Campaign
		if r.try {
			campaign = r.elector.TryCampaign
		}
		lease, err := campaign(ctx)
		won <- result{lease, err}
	}()
	for {
		select {
		case s := <-r.signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				r.stopped = true
				cancel()
			}
		case w := <-won:
			switch {
			case w.err == nil && r.stopped:
				resign(w.lease)
				return nil, nil
			case w.err == nil:
				return w.lease, nil
			case r.stopped:
				return nil, nil
			case errors.Is(w.err, elector.ErrHeld), errors.Is(w.err, context.DeadlineExceeded):
				return nil, exitCode{r.heldCode, w.err}
			}
			return nil, w.err
		}
	}
}

// term runs the command under the lease, and gives that up once nothing of the
// command is alive.
func (r *runner) term(ctx context.Context, lease *elector.Lease) (guardian.Status, ending) {
	began := time.Now()
	g, err := guardian.Start(guardian.Command{
		Path: r.path, Argv: r.argv, Env: environment(r.name, r.elector.ID(), lease.Token()),
		Deadline: deadline(lease), Kill: r.killBefore, Grace: r.lossGrace,
	}, []string{guardianArgument}, func(text string) { r.say("%s", text) })
	if err != nil {
		resign(lease)
		return guardian.Status{}, ending{err: notStarted(r.argv[0], err)}
	}
	r.say("leads %q with token %d; the command has process id %d", r.name, lease.Token(), g.PID())
	over := lease.Context().Done()
	var end ending
	for waiting := true; waiting; {
		select {
		case <-r.renewed:
			g.Extend(deadline(lease))
		case <-over:
			over = nil
			g.Stop(0) // nothing if the guardian was in time
			end.err = lease.Check()
		case s := <-r.signals:
			r.forward(g, s.(syscall.Signal))
		case <-g.Done():
			waiting = false
		}
	}
	status, known := g.Exit()
	if !known {
		status = guardian.Status{Signal: syscall.SIGKILL} // with the guardian
	}
	if end.err == nil {
		r.keep(lease, began)
		if end.err = lease.Check(); end.err == nil {
			resign(lease)
		}
	}
	return status, end
}

// keep holds the election for --at-least.
func (r *runner) keep(lease *elector.Lease, began time.Time) {
	left := time.NewTimer(time.Until(began.Add(r.atLeast)))
	defer left.Stop()
	for !r.stopped {
		select {
		case <-left.C:
			return
		case <-lease.Context().Done():
			return
		case <-r.renewed:
		case s := <-r.signals:
			r.stopped = s == syscall.SIGTERM || s == syscall.SIGINT
		}
	}
}

// forward passes a signal on; one that stops run ends the command, and a second
// one at once.
func (r *runner) forward(g *guardian.Guarded, s syscall.Signal) {
	if s != syscall.SIGTERM && s != syscall.SIGINT {
		g.Signal(s)
		return
	}
	grace := r.stopGrace
	if r.stopped {
		grace = 0
	}
	r.stopped = true
	g.Stop(grace)
}

// deadline returns when the lease ends unless it is renewed.
func deadline(lease *elector.Lease) guardian.Moment {
	now := guardian.Now() // before Remaining, so that it is early if at all
	return now.Add(lease.Remaining())
}

func resign(lease *elector.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	lease.Resign(ctx) // logs what fails; the lease then lapses
}

// notStarted gives the exit codes of shells.
func notStarted(command string, err error) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOENT) {
		code = exitNotFound
	}
	return exitCode{code, fmt.Errorf("%s cannot be started: %w", command, err)}
}

// say prints a line for people.
func (t *tool) say(format string, args ...any) {
	fmt.Fprintf(t.err, "elector: "+format+"\n", args...)
}
