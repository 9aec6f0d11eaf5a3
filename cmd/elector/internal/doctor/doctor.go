// Package doctor looks for what is wrong with a store before an outage does.
//
// It opens the store twice, as two candidates would, asks the backend what it
// sees (backends.Inspector), compares the hosts of the URL, and reads and writes one
// record, that of the election [Election]: acquires it, renews it, and vacates it.
// Several doctors can run at the same time; they take turns. A check that fails names a
// cause that reads have shown (see fault). Then the doctor looks at the store's groups of
// package partition, if the store can list its records.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Election is the election that the doctor writes. It is vacant afterwards.
const Election = "elector-doctor"

// The levels of a Line.
const (
	OK   = "ok"
	Warn = "warn" // elections work now, and may not later
	Fail = "fail" // elections do not work, or are not safe
)

// A Line is the result of one check.
type Line struct {
	Level string `json:"level"`
	Check string `json:"check"`
	Seen  string `json:"seen"`
	Fix   string `json:"fix"` // empty if nothing is wrong, or if what was seen is an error that says what to do
}

// Options are what to look at.
type Options struct {
	URL      string
	TTL      time.Duration // of the elections
	ReadOnly bool          // write nothing
}

// requestTimeout is the default RequestTimeout of an elector with the TTL.
func requestTimeout(ttl time.Duration) time.Duration {
	hold := ttl - ttl/10
	return min(hold/6, 30*time.Second)
}

// patience bounds each request of the doctor, far above what an elector allows.
const patience = 30 * time.Second

// Run makes the checks and calls report with each result. It returns the error of
// the first check that failed.
func Run(ctx context.Context, o Options, report func(Line)) error {
	d := &doctor{Options: o, report: report}
	first, took := d.open(ctx)
	if first == nil {
		return d.failed
	}
	defer first.Close()
	d.line("connection", fmt.Sprintf("%s opened in %v", first.Describe().Store, took.Round(time.Millisecond)), "", nil)
	d.transport()
	if least := first.Describe().MinTTL; o.TTL < least {
		d.line("TTL", fmt.Sprintf("%v", o.TTL), fmt.Sprintf("use a TTL of %v or more: this store allows no shorter one", least), backends.ErrMisconfigured)
	}
	if lossy := first.Describe().Lossy; lossy != "" {
		d.line("durability", lossy, "use a store that keeps what it acknowledged, or have the resource refuse stale tokens", nil)
	}
	d.inspect(ctx, first)
	if !d.oneStore(ctx) {
		return d.failed
	}
	second, _ := d.open(ctx)
	if second == nil {
		return d.failed
	}
	defer second.Close()
	d.examine(ctx, first, second)
	d.groups(ctx, first)
	return d.failed
}

// A doctor is one run.
type doctor struct {
	Options
	report func(Line)
	failed error
	shown  []backends.Attempt // the states of the scratch election, in the order in which they were first seen
}

// line reports a check. With an error it failed; with a fix alone it is a
// warning.
func (d *doctor) line(check, seen, fix string, err error) {
	l := Line{OK, check, oneLine(seen), fix}
	switch {
	case err != nil:
		l.Level = Fail
		if d.failed == nil {
			d.failed = err
		}
	case fix != "":
		l.Level = Warn
	}
	d.report(l)
}

// fails reports a check that ended with an error, which says what to do.
func (d *doctor) fails(check string, err error) { d.line(check, err.Error(), "", err) }

// doubts reports a check that ended with an error that elections survive.
func (d *doctor) doubts(check string, err error) {
	d.report(Line{Warn, check, oneLine(err.Error()), ""})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func (d *doctor) open(ctx context.Context) (backends.Backend, time.Duration) {
	begun := time.Now()
	b, err := d.opener()(ctx, d.URL)
	if err != nil {
		d.fails("connection", err)
		return nil, 0
	}
	return b, time.Since(begun)
}

func (d *doctor) opener() func(context.Context, string) (backends.Backend, error) {
	if d.ReadOnly {
		return backends.OpenReadOnly
	}
	return backends.Open
}

// transport looks at whether a login crosses the network in the clear.
func (d *doctor) transport() {
	u, err := url.Parse(d.URL)
	if err != nil || u.User == nil {
		return
	}
	fix := map[string]string{"etcd": "use etcds://", "zookeeper": "use zookeepers://", "redis": "use rediss://"}[u.Scheme]
	mode := cmp.Or(u.Query().Get("sslmode"), os.Getenv("PGSSLMODE"))
	if strings.HasPrefix(u.Scheme, "postgres") && !strings.HasPrefix(mode, "verify-") {
		fix = "add sslmode=verify-full"
	}
	switch {
	case isLocal(u):
		d.line("TLS", "a login, on this machine", "", nil)
	case fix == "":
		d.line("TLS", "a login, over TLS that checks the server", "", nil)
	default:
		d.line("TLS", "a login, without TLS that checks the server", fix+": the password can be read on the network", nil)
	}
}

// isLocal reports whether a URL names hosts of this machine only.
func isLocal(u *url.URL) bool {
	for _, host := range strings.Split(cmp.Or(u.Host, u.Query().Get("host")), ",") {
		name := (&url.URL{Host: host}).Hostname()
		if name != "" && name != "localhost" && name[0] != '/' && !net.ParseIP(name).IsLoopback() { // PostgreSQL's /path is a socket
			return false
		}
	}
	return true
}

// inspect asks the backend, and compares the clocks.
func (d *doctor) inspect(ctx context.Context, b backends.Backend) {
	i, ok := b.(backends.Inspector)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begun := time.Now()
	inspection, err := i.Inspect(ctx, d.TTL)
	took := time.Since(begun)
	if err != nil {
		d.doubts("settings", err)
		return
	}
	for _, f := range inspection.Findings {
		d.line(f.What, f.Seen, f.Fix, f.Err)
	}
	if inspection.Clock.IsZero() {
		return
	}
	// Some stores tell the time in seconds.
	off, fix := begun.Add(took/2).Sub(inspection.Clock).Abs().Round(time.Second), ""
	seen := "this machine's clock and the store's agree"
	if off > took+3*time.Second {
		seen = fmt.Sprintf("this machine's clock and the store's differ by %v", off)
		fix = "set the clocks right (NTP): elections are safe with wrong clocks, but logs are not comparable, certificates and signatures fail, and tokens go back if a record is lost"
	}
	d.line("clock", seen, fix, nil)
}

// examine reads and writes the scratch election, once more from the beginning if
// another doctor comes in between.
func (d *doctor) examine(ctx context.Context, first, second backends.Backend) {
	for turn := 1; ; turn++ {
		p := newPatient(d, first, second)
		err := p.examine(ctx)
		var found fault
		var other busy
		switch {
		case err == nil:
			return
		case errors.As(err, &found):
			d.line(found.check, found.seen, found.fix, err)
			return
		case !errors.As(err, &other):
			d.fails(p.doing, err)
			return
		case turn == 20:
			d.line(p.doing, fmt.Sprintf("nothing was found out: in each of %d turns %v", turn, other), "run one doctor at a time; nothing else may write this election", elector.ErrHeld)
			return
		}
		pause(ctx, time.Duration(turn)*jitter())
	}
}
