package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// runFlags are the flags of elector run.
type runFlags struct {
	id, value                           string
	priority                            int
	ttl, renewEvery, requestTimeout     time.Duration
	lossGrace, stopGrace, wait, atLeast time.Duration
	restart, once, try, isolate         bool
	quiet, keepURL                      bool
	heldCode                            int
	heldSilent                          bool
	until                               time.Time     // of --wait; zero without
	hold, killBefore, releaseTimeout    time.Duration // computed
}

// byDefault is a time that no user gives.
const byDefault = time.Duration(-1)

func (t *tool) runCommand() *cobra.Command {
	f := &runFlags{}
	c := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while this machine leads",
		Long: `Run waits until this machine leads the election, starts the command, and keeps the
election until the command ends. No shell is involved. The command's exit code is
run's.

The command gets in its environment:

  ELECTOR_TOKEN     the fencing token: send it with each write
  ELECTOR_ELECTION  the name of the election
  ELECTOR_ID        the name of this candidate

and what run has in its own, except an ELECTOR_URL with a password or a token: with
--keep-url also that. A command that reads the environment of its parents finds it
nevertheless, unless --isolate hides them; --url-file with a file that the command may
not read is better.

When the command ends, what it has left is killed, and then the election is
resigned: another machine leads within milliseconds. What is alive 10 s after
SIGKILL makes run end with 70 without resigning: the election lapses.

When the lease cannot be renewed, the command gets SIGTERM in time, and all its
descendants SIGKILL, so that none is alive when another machine may lead; then run
waits to lead again. A guardian process sees to that, also while run itself is
stopped, hangs, or was killed. For a TTL of 15 s: SIGTERM 11 s after the last
renewal, SIGKILL after 12.75 s, and another machine leads after 16.5 s.

On SIGTERM or SIGINT the command gets SIGTERM, and SIGKILL after --stop-grace;
meanwhile the election is kept. A second signal kills at once. Other signals are
passed on to the command. Told to stop before --at-least is over, run does not
resign: the election lapses after --ttl.

Upon elector resign the command gets SIGTERM, and SIGKILL after --stop-grace, while
the election is kept; then run resigns, and waits to lead again once another machine
has led. With --once it ends with 70.

With --restart, a command that ends within 10 s is started again after a pause of
1 s, and of up to 1 min if it does so again and again; meanwhile the election is
resigned.

With --isolate the command runs in a PID namespace of its own, in which the guardian is
process 1: when the guardian ends, the kernel ends the command and all that it has
started, also while run is stopped or killed, and whatever user they have become. The
command then sees no other process, its /proc is its own, and the kernel's process ids
for it are not those outside. Without CAP_SYS_ADMIN it also gets a user namespace, in
which it keeps its user and group, and programs such as sudo do not work. Where the
kernel refuses this, run ends with 78. Linux only.

What run cannot cover: run stopped or killed and the guardian stopped, or, without
--isolate, killed too; a machine that was stopped, or so busy that the guardian does not
run for a twentieth of the TTL; a process in an uninterruptible wait (state D); without
--isolate, one that has got another user's rights, so that it cannot be killed; one that
another program on this machine starts for the command, such as a container; and an
operator who edits or deletes the record. A resource that checks ELECTOR_TOKEN is safe
from these too. On systems other than Linux, run covers the command's process group only.

With --wait, a store that does not answer at the start is tried again until the time is
over. Otherwise run ends with 69 then; once it campaigns, it tries on for ever.

The exit code is the command's, 128 + n if signal n ended it, 126 if the system
refuses it and 127 if it does not exist; 70 with --once when the lease is lost
or moved; 75, or --held-code, when another machine leads; 0 if it is told to stop before
it leads. If run is told to stop, and SIGTERM ends the command, run ends by SIGTERM as
well: 143 to a shell, and to systemd a service that has stopped in order. A program that
exits with 143 itself, as those in Java do, needs SuccessExitStatus=143 there. 64 does
not pass by itself: RestartPreventExitStatus=64. Run ends with 77 and 78 only before it
has led or seen another leader, or at its deadline: what is refused later it tries again.

Run notifies systemd (Type=notify) with READY=1 once it campaigns, STATUS= with what it
does (campaigning, leading with which token, draining) and STOPPING=1.`,
		Example: `  elector run invoices -- ./send-invoices
  elector run worker --restart -- ./worker --queue=mail

  # In cron, on several hosts. The wait is longer than 1.1 TTL, so that a leader that
  # crashed is replaced; the minimum is longer than the wait and what the clocks differ.
  elector run nightly --quiet --wait 20s --at-least 1m --held-code 0 -- ./report`,
		Args: func(c *cobra.Command, args []string) error {
			switch dash := c.ArgsLenAtDash(); {
			case dash < 0 && len(args) > 1:
				return usage("put -- between the election's name and the command: elector run %s -- %s", args[0], args[1])
			case len(args) == 0 || dash == 0:
				return usage("no election: elector run NAME -- COMMAND")
			case dash > 1:
				return usage("run takes one election before --, not %d", dash)
			case len(args) == 1:
				return usage("no command: elector run %s -- COMMAND", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			f.heldSilent = f.quiet || c.Flags().Changed("held-code")
			return t.run(c.Context(), args[0], args[1:], f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.id, "id", "", "the name of this candidate (default host, process id and a random part)")
	flags.StringVar(&f.value, "value", "", "what to publish while this machine leads, such as an address")
	flags.IntVar(&f.priority, "priority", 0, "a number from 0 up, a revision for example: the waiting machine with the highest one leads next after a resignation")
	flags.DurationVar(&f.ttl, "ttl", 15*time.Second, "how long a silent leader keeps the election")
	flags.DurationVar(&f.renewEvery, "renew-every", 0, "the time between renewals (default 0.3 TTL)")
	flags.DurationVar(&f.requestTimeout, "request-timeout", 0, "the bound of each request to the store (default half of --renew-every)")
	flags.DurationVar(&f.lossGrace, "loss-grace", byDefault, "the time from SIGTERM to SIGKILL when the lease cannot be renewed, at most a quarter of its validity (default an eighth)")
	flags.Lookup("loss-grace").DefValue = "0s" // the help has it in words
	flags.DurationVar(&f.stopGrace, "stop-grace", 10*time.Second, "the time from SIGTERM to SIGKILL when run is told to stop, or to resign")
	flags.BoolVar(&f.restart, "restart", false, "when the command ends, campaign and start it again")
	flags.BoolVar(&f.isolate, "isolate", false, "run the command in a PID namespace of its own, so that the kernel ends all of it with the guardian (Linux)")
	flags.BoolVar(&f.once, "once", false, "end with 70 when the lease is lost, instead of campaigning again")
	flags.BoolVar(&f.try, "try", false, "end at once if another machine leads; this never replaces a leader that crashed")
	flags.DurationVar(&f.wait, "wait", 0, "end if this machine does not lead after this time, which covers a store that does not answer at the start; less than 1.1 TTL never replaces a leader that crashed (default wait for ever)")
	flags.DurationVar(&f.atLeast, "at-least", 0, "keep the election for at least this long, even if the command ends sooner")
	flags.IntVar(&f.heldCode, "held-code", exitHeld, "the exit code when another machine leads, with --try or --wait; nothing is printed then")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "print only what asks for action: neither that this machine leads nor that another one does")
	flags.BoolVar(&f.keepURL, "keep-url", false, "pass ELECTOR_URL on to the command even if it has a password or token")
	return c
}

// options checks the flags, and returns the elector's options.
func (f *runFlags) options() (*elector.Options, error) {
	o := &elector.Options{ID: f.id, Value: f.value, Priority: f.priority, TTL: f.ttl, RenewEvery: f.renewEvery, RequestTimeout: f.requestTimeout}
	switch {
	case f.ttl <= 0:
		return nil, usage("--ttl is %v, not above 0", f.ttl)
	case f.try && f.wait > 0:
		return nil, usage("--try and --wait exclude each other")
	case f.wait < 0, f.atLeast < 0, f.stopGrace < 0, f.renewEvery < 0, f.requestTimeout < 0, f.lossGrace < 0 && f.lossGrace != byDefault:
		return nil, usage("a time is below 0")
	case f.restart && (f.try || f.wait > 0):
		return nil, usage("--restart campaigns again and again; leave out --try and --wait")
	case f.heldCode < 0 || f.heldCode > 255:
		return nil, usage("--held-code is %d, not between 0 and 255", f.heldCode)
	}
	// The elector's own defaults, which are needed here before it has them.
	f.hold = f.ttl - f.ttl/10
	if f.renewEvery == 0 {
		o.RenewEvery = f.hold / 3
	}
	if f.requestTimeout == 0 {
		o.RequestTimeout = min(o.RenewEvery/2, 30*time.Second)
	}
	f.releaseTimeout = max(2*o.RequestTimeout, time.Second)
	// Upon a request it bounds the command's end too.
	o.ReleaseTimeout = min(max(f.releaseTimeout, f.stopGrace+time.Second), 24*time.Hour)
	f.killBefore = max(250*time.Millisecond, f.ttl/20)
	if f.lossGrace == byDefault {
		f.lossGrace = f.hold / 8
	}
	if f.lossGrace > f.hold/4 {
		return nil, usage("--loss-grace is %v, more than %v, a quarter of the lease's validity", f.lossGrace, f.hold/4)
	}
	if left := f.hold - f.killBefore - f.lossGrace; left < o.RenewEvery+o.RequestTimeout {
		return nil, usage("a lease is valid for %v; less %v for SIGKILL and %v for --loss-grace that leaves %v, and one slow renewal takes --renew-every %v and --request-timeout %v: use a longer --ttl or a shorter one of these",
			f.hold, f.killBefore, f.lossGrace, left, o.RenewEvery, o.RequestTimeout)
	}
	return o, nil
}

// environment is run's own and what the command gets besides; of two values the
// later one counts. A URL with a secret is not in it, unless keepURL is set.
func environment(own []string, keepURL bool, name, id string, token elector.Token) []string {
	all := slices.DeleteFunc(slices.Clone(own), func(variable string) bool {
		url, found := strings.CutPrefix(variable, "ELECTOR_URL=")
		return found && !keepURL && secret(url)
	})
	return append(all, "ELECTOR_ELECTION="+name, "ELECTOR_ID="+id, fmt.Sprintf("ELECTOR_TOKEN=%d", token))
}

// secret reports whether a store's URL has a password or a token, or may have one.
func secret(text string) bool {
	u, err := url.Parse(text)
	if err != nil || strings.Contains(backends.Redact(u), "not shown") {
		return true
	}
	if _, has := u.User.Password(); has {
		return true
	}
	for key := range u.Query() {
		key = strings.ToLower(key)
		for _, word := range []string{"pass", "secret", "token", "key", "credential", "auth"} {
			if strings.Contains(key, word) {
				return true
			}
		}
	}
	return false
}

// beginWait begins the time of --wait, which covers the start and the first campaign, and
// each later campaign by itself.
func (f *runFlags) beginWait() {
	if f.wait > 0 {
		f.until = time.Now().Add(f.wait)
	}
}

// deadlined ends when --wait is over.
func (f *runFlags) deadlined(ctx context.Context) (context.Context, context.CancelFunc) {
	if f.until.IsZero() {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, f.until)
}
