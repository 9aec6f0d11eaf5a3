package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector/cmd/elector/internal/doctor"
)

func (t *tool) doctorCommand() *cobra.Command {
	o := doctor.Options{}
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with a store before an outage does",
		Long: `Doctor opens the store twice, as two candidates would, and prints a line for each
check: ok; warn if elections work now and may not later; fail if they do not work, or
are not safe. Under the line it prints what to do.

It writes one election, elector-doctor, which nothing else uses: acquires it, renews
it 20 times (5 times on a store that limits the write rate) and vacates it. The vacant
record stays. Several doctors may run at the same time. If the URL names several hosts,
doctor writes through one and reads through each other one: hosts of two stores are a
failure. Like any candidate, doctor creates a missing directory, and with create=true
in the URL a missing table or bucket. With --read-only it writes and creates nothing,
needs only the right to read, and compares the hosts by the record that an earlier run
has left.

Then doctor looks at the groups of package partition that the store lists, a line for
each: at most for 1.1 TTL, until all members have renewed and all partitions are where
they should be. It warns if no member runs, or if partitions that should move do not,
and it fails if a group that has members leaves partitions without an owner. A member
that is gone is no finding once the others own what it had.

Fields in JSON, one object a line: level (ok, warn or fail), check, seen, fix.

Exit codes: 0 for ok and warn; for fail that of the first one: 3 partitions of a
group have no owner; 64 wrong usage; 69 the store is not available; 75 another process
writes elector-doctor all the time; 77 the store denies access; 78 it is not set up as it
must be.`,
		Example: `  elector doctor
  elector doctor --ttl 5s --read-only
  elector doctor -o json | jq -r 'select(.level != "ok")'`,
		Args: arguments(0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error { return t.doctor(c.Context(), o) },
	}
	c.Flags().DurationVar(&o.TTL, "ttl", 15*time.Second, "the TTL of the elections")
	c.Flags().BoolVar(&o.ReadOnly, "read-only", false, "write nothing")
	return c
}

func (t *tool) doctor(ctx context.Context, o doctor.Options) (err error) {
	if o.TTL <= 0 || o.TTL > 24*time.Hour {
		return usage("--ttl is %v, not above 0 and at most 24h", o.TTL)
	}
	if o.URL, err = t.address(); err != nil {
		return err
	}
	format, err := t.format()
	if err != nil {
		return err
	}
	p := &printer{format: format, out: t.out}
	err = doctor.Run(ctx, o, func(l doctor.Line) {
		if format != "table" {
			p.row(l, l.Level, l.Check, l.Seen, l.Fix)
			return
		}
		// Long lines: no table.
		fmt.Fprintf(t.out, "%s %-18s %s\n", t.colour(t.out, levelColours[l.Level], fmt.Sprintf("%-4s", l.Level)), plain(l.Check), plain(l.Seen))
		if l.Fix != "" {
			fmt.Fprintf(t.out, "     %-18s %s\n", "", plain(l.Fix))
		}
	})
	if err != nil {
		return exitCode{code: codeOf(err)} // it was printed
	}
	return nil
}

var levelColours = map[string]string{doctor.OK: green, doctor.Warn: yellow, doctor.Fail: red}
