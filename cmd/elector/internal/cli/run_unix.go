//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
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
	relay      *relay
	renewed    chan struct{}
	signals    chan os.Signal
	stopped    bool // told to stop
	abandoned  bool // the process ends without telling the store
	systemd    *notifier
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
	if f.isolate {
		if err := guardian.Isolates(guardianArgument); err != nil {
			return exitCode{exitMisconfigured, err}
		}
	}
	f.beginWait()
	relayed := *t
	r := &runner{
		tool: &relayed, runFlags: f, name: name, path: path, argv: argv,
		relay: newRelay(t.err, t.lively()), renewed: make(chan struct{}, 1), signals: make(chan os.Signal, 64),
	}
	relayed.err = r.relay
	defer r.relay.close()
	r.systemd = newNotifier(func(err error) { r.say("notifying systemd: %v", err) })
	defer func() {
		r.systemd.tell("STOPPING=1")
		r.systemd.close()
	}()
	o.Trace = &elector.Trace{
		Renewed: func(context.Context, elector.LeaseInfo) {
			select {
			case r.renewed <- struct{}{}:
			default:
			}
		},
		Waiting: func(_ context.Context, c elector.CampaignInfo) {
			r.relay.show(plain(strings.TrimPrefix(oneLine(c.Err), "elector: ")))
		},
	}
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH} {
		if !signal.Ignored(s) { // as nohup does
			signal.Notify(r.signals, s)
		}
	}
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a closed stderr must not end the term
	defer signal.Stop(r.signals)
	go guardian.ReapOrphans()
	done, err := r.open(ctx, o)
	if err != nil || r.stopped {
		return err
	}
	err = r.terms(ctx)
	if !r.abandoned {
		done()
	}
	if t.endBy = r.endBy; t.endBy != 0 {
		return exitCode{code: 128 + int(t.endBy)}
	}
	return err
}

// open makes the candidate. With --wait it tries again until that is over, unless the
// error cannot pass. After a signal to stop there is no candidate, and no error.
func (r *runner) open(ctx context.Context, o *elector.Options) (done func(), err error) {
	ctx, cancel := r.deadlined(ctx)
	defer cancel()
	type result struct {
		e    candidate
		done func()
		err  error
	}
	var last error
	for pause := 250 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		opened := make(chan result, 1)
		go func() {
			e, done, err := r.firstCandidate(ctx, r.name, o)
			opened <- result{e, done, err}
		}()
		var got result
		for waiting := true; waiting; {
			select {
			case got = <-opened:
				waiting = false
			case s := <-r.signals:
				if ends(s) {
					r.told()
					cancel()
				}
			}
		}
		switch {
		case got.err == nil && r.stopped:
			got.done()
			return nil, nil
		case got.err == nil:
			r.relay.show("")
			r.elector = got.e.Elector
			return got.done, nil
		case r.stopped:
			return nil, nil
		case r.until.IsZero(), !errors.Is(got.err, elector.ErrUnavailable) || backends.Permanent(got.err):
			return nil, got.err
		case last == nil || ctx.Err() == nil: // the last one is cut short
			last = got.err
		}
		if !time.Now().Add(pause).Before(r.until) {
			return nil, last
		}
		r.relay.show("the store does not answer; trying again")
		if !r.rests(pause) {
			return nil, nil
		}
	}
}

// told records that run is told to stop.
func (r *runner) told() {
	r.stopped = true
	r.systemd.tell("STOPPING=1\nSTATUS=stopping")
}

// terms leads again and again.
func (r *runner) terms(ctx context.Context) error {
	var rest backoff
	for first := true; ; first = false {
		if !first {
			r.beginWait()
		}
		lease, err := r.campaign(ctx)
		if lease == nil {
			return err
		}
		began := time.Now()
		end, err := r.term(lease)
		switch {
		case err != nil:
			return err
		case end.lost != nil && r.once && !r.stopped:
			return exitCode{exitLost, fmt.Errorf("the election %q is lost: %s", r.name, brief(end.lost))}
		case end.lost != nil && !r.stopped:
			// The guardian or the elector has told why.
			if errors.Is(end.lost, guardian.ErrOverdue) {
				r.say("%v", end.lost)
			}
			r.note("campaigning again")
			continue
		case end.requested != nil && r.once && !r.stopped:
			return exitCode{exitLost, fmt.Errorf("the election %q is resigned: %s", r.name, brief(end.requested))}
		case end.requested != nil && !r.stopped:
			r.note("resigned upon a request; campaigning again once another machine has led")
			continue
		case r.restart && !r.stopped:
			pause := rest.after(time.Since(began))
			r.note("the command ended with %d; campaigning again %s", end.status.ExitCode(), in(pause))
			if r.rests(pause) {
				continue
			}
		}
		if r.stopped && end.status.Signal == syscall.SIGTERM {
			r.endBy = syscall.SIGTERM // as run was told
		}
		if code := end.status.ExitCode(); code != 0 {
			return exitCode{code: code}
		}
		return nil
	}
}

// A backoff is the pause before a command is started again.
type backoff time.Duration

const (
	briefly      = 10 * time.Second // a command that runs longer is started again at once
	longestPause = time.Minute
)

func (b *backoff) after(ran time.Duration) time.Duration {
	if ran >= briefly {
		*b = 0
	} else {
		*b = backoff(min(max(2*time.Duration(*b), time.Second), longestPause))
	}
	return time.Duration(*b)
}

func in(d time.Duration) string {
	if d == 0 {
		return "at once"
	}
	return fmt.Sprintf("in %v", d)
}

// rests waits, and returns false if run is told to stop meanwhile.
func (r *runner) rests(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !r.stopped {
		select {
		case <-timer.C:
			return true
		case s := <-r.signals:
			if ends(s) {
				r.told()
			}
		}
	}
	return false
}

// ends reports whether a signal ends run while no command runs.
func ends(s os.Signal) bool {
	return s == syscall.SIGTERM || s == syscall.SIGINT || s == syscall.SIGHUP || s == syscall.SIGQUIT
}

// campaign returns no lease, and no error, if run is told to stop.
func (r *runner) campaign(ctx context.Context) (*elector.Lease, error) {
	ctx, cancel := r.deadlined(ctx)
	defer cancel()
	defer r.relay.show("")
	r.systemd.tell(fmt.Sprintf("READY=1\nSTATUS=campaigning for %q", r.name))
	r.relay.show("campaigning for " + r.name)
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
			if ends(s) {
				r.told()
				cancel()
			}
		case w := <-won:
			switch {
			case w.err == nil && r.stopped:
				r.resign(w.lease)
				return nil, nil
			case w.err == nil:
				return w.lease, nil
			case r.stopped:
				return nil, nil
			case errors.Is(w.err, elector.ErrHeld),
				errors.Is(w.err, context.DeadlineExceeded) && !errors.Is(w.err, elector.ErrUnavailable) && !backends.Permanent(w.err):
				if r.heldSilent {
					return nil, exitCode{code: r.heldCode}
				}
				return nil, exitCode{r.heldCode, w.err}
			}
			return nil, w.err
		}
	}
}

// An ending is how a term ended: with the command, unless the lease was lost, or
// another process requested the resignation, before.
type ending struct {
	status    guardian.Status
	lost      error
	requested error
}

// term runs the command under the lease, and gives that up once nothing of the
// command is alive. It returns an error if run cannot go on.
func (r *runner) term(lease *elector.Lease) (end ending, err error) {
	began := time.Now()
	g, err := guardian.Start(guardian.Command{
		Path: r.path, Argv: r.argv, Env: environment(os.Environ(), r.keepURL, r.name, r.elector.ID(), lease.Token()), Group: group(),
		Deadline: deadline(lease), Kill: r.killBefore, Grace: r.lossGrace, Isolate: r.isolate,
	}, guardianArgument, func(text string) { r.say("%s", text) })
	if err != nil {
		r.resign(lease)
		switch {
		case errors.Is(err, guardian.ErrOverdue):
			return ending{lost: err}, nil
		case errors.As(err, new(*guardian.Error)):
			return ending{}, notStarted(r.argv[0], err)
		}
		return ending{}, exitCode{exitMisconfigured, err}
	}
	r.note("leads %q with token %d; the command has process id %d", r.name, lease.Token(), g.PID())
	r.systemd.tell(fmt.Sprintf("STATUS=leads %q with token %d", r.name, lease.Token()))
	g.Extend(deadline(lease)) // a renewal during the start may have been missed
	over := lease.Context().Done()
	for waiting := true; waiting; {
		select {
		case <-r.renewed:
			g.Extend(deadline(lease))
		case <-over:
			over = nil
			if end.lost = lease.Check(); end.lost == nil { // the lease is kept while the command ends
				end.requested = context.Cause(lease.Context())
				r.note("%s; the command is told to stop", brief(end.requested))
				r.systemd.tell(fmt.Sprintf("STATUS=draining: %s; the command is told to stop", brief(end.requested)))
				g.Stop(r.stopGrace)
				continue
			}
			g.Stop(0) // nothing if the guardian was in time
		case s := <-r.signals:
			r.forward(g, s.(syscall.Signal))
		case <-g.Done():
			waiting = false
		}
	}
	if s := g.Survivors(); len(s) > 0 {
		r.abandoned = true
		return end, exitCode{exitLost, fmt.Errorf("SIGKILL did not end %s; run ends without resigning %q, which lapses: end these processes before another machine leads", strings.Join(s, ", "), r.name)}
	}
	known := false
	if end.status, known = g.Exit(); !known {
		end.status = guardian.Status{Signal: syscall.SIGKILL} // with the guardian
	}
	if end.requested != nil && end.lost == nil {
		end.lost = lease.Check() // since
	}
	switch {
	case end.lost != nil: // nothing to resign
	case g.Overdue():
		end.lost = errors.New("the lease was not renewed in time")
		r.resign(lease)
	case end.requested != nil, r.keep(lease, began):
		r.resign(lease)
	default:
		r.abandoned = true
	}
	return end, nil
}

// keep holds the election for --at-least, and returns false if run is told to stop
// before.
func (r *runner) keep(lease *elector.Lease, began time.Time) bool {
	left := time.NewTimer(time.Until(began.Add(r.atLeast)))
	defer left.Stop()
	for {
		select {
		case <-left.C:
			return true
		case <-lease.Context().Done():
			r.say("--at-least is cut short: %s", brief(context.Cause(lease.Context())))
			return true
		default:
		}
		if r.stopped {
			return time.Since(began) >= r.atLeast
		}
		select {
		case <-left.C:
			return true
		case <-lease.Context().Done():
		case s := <-r.signals:
			if ends(s) {
				r.told()
			}
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
	r.told()
	r.systemd.tell("STATUS=draining: the command is told to stop")
	g.Stop(grace)
}

// deadline returns when the lease ends unless it is renewed.
func deadline(lease *elector.Lease) guardian.Moment {
	now := guardian.Now() // before Remaining, so that it is early if at all
	return now.Add(lease.Remaining())
}

// group is the process group of the command: run's own if the command may use the
// terminal, and one that can be killed as a whole otherwise.
func group() int {
	if isTerminal(os.Stdin) || isTerminal(os.Stdout) || isTerminal(os.Stderr) {
		return syscall.Getpgrp()
	}
	return 0
}

// resign blocks until the store is told, or does not answer.
func (r *runner) resign(lease *elector.Lease) {
	ctx, cancel := context.WithTimeout(context.Background(), r.releaseTimeout)
	defer cancel()
	// What fails is logged, and the lease lapses. The release goes on for as long as
	// Options.ReleaseTimeout; run does not wait for that when it ends.
	r.abandoned = lease.Release(ctx) != nil
}

// notStarted gives the exit codes of shells.
func notStarted(command string, err error) error {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = exitNotFound
	}
	return exitCode{code, fmt.Errorf("%s cannot be started: %w", command, err)}
}

// note prints a line for people, unless run is quiet.
func (r *runner) note(format string, args ...any) {
	if !r.quiet {
		r.say(format, args...)
	}
}

// endBy ends this process by the signal, so that its parent sees what ended it. Process
// 1 cannot end so, and goes on.
func endBy(s syscall.Signal) {
	if s == 0 {
		return
	}
	signal.Reset(s)
	if syscall.Kill(os.Getpid(), s) == nil && os.Getpid() != 1 {
		select {} // until the signal is delivered
	}
}
