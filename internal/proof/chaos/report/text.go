package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// Figures writes the figures of a history as a table for the terminal: a line
// for each store, and below it one for each kind of fault that hit it. Problems
// and overlaps are listed below the table.
//
// What happens is counted for the fault that broke something then: of the faults
// that began in that election and that have not been healed for longer than
// Rules.Takeover, the one that began last; "no fault" if there is none. A gap and
// the election that ends it are counted for the gap's beginning.
//
//   - faults: Killed, Stopped, Terminated, Fault, Removed, Restored, Spoiled and
//     Edited; but what mends a Spoiled or takes an extension away is none.
//     Candidates that are terminated when nothing is started or elected after
//     them are not counted: so a campaign ends.
//   - elections: Acquired.
//   - lost: leases that a candidate told to be lost (Ended).
//   - takeovers: a candidate leads after one whose process died or whose lease
//     was lost or ran out, and no candidate led in between. Handovers: after one that
//     resigned and told the store so. The first election is neither; nor is one
//     without a gap before it.
//   - median, longest (of those over their bound, if there are any): of the time without a leader, but only its last part, in
//     which a candidate could have led: no lasting fault of the store, and at least
//     one candidate that campaigned and was neither stopped nor broken until the
//     gap's end. A leader leads from the first successful look at its lease until
//     the lease is over, surely, or its process is killed.
//   - bound: of the longest: Rules.Takeover; of a handover that was not disturbed
//     Renew, two Requests and 250 ms; and for both the time for which a candidate
//     stood still meanwhile (Stalled).
//   - no leader: the longest time without a leader, whatever was broken.
//   - refused, accepted: writes, as told by the resource (Rejected, Accepted).
//     Stale: accepted with a token below that of an earlier accepted one; or
//     guarded, and sent after a newer acquisition was acknowledged (Committed).
//   - guarded writes, below the table: those to data in the store, through its
//     guard (Committed, Stale, Doubtful).
//   - groups, below the table: the rounds in which the candidates were members of a
//     group. In the table each of its partitions is an election, and the fault of a
//     whole group is one.
//   - violations: the problems, and what they are about: safety, progress, or the
//     account, where no guarantee is seen broken and yet what was told
//     does not fit together. Overlaps: pairs of leases that were surely valid at
//     the same time; the length is that of the longest. Those after the record was
//     deleted or written back during the first lease, or its holder or TTL changed,
//     are counted apart: a candidate that had not seen what is gone may lead at once,
//     which no election can rule out. If it had seen it, or if the first one
//     leads on for longer than until its next renewal, that is a violation.
//
// It returns an error of out.
func Figures(out io.Writer, h *history.History, problems []Problem) error {
	all := stories(h, problems)
	rows, stores, sum := count(all)
	lines := [][]string{headings}
	for _, s := range stores {
		lines = append(lines, cells(s.Store, s))
		for _, r := range rows {
			if r.Store == s.Store {
				lines = append(lines, cells("  "+r.Fault, r))
			}
		}
	}
	lines = append(lines, cells("all", sum))
	w := bufio.NewWriter(out)
	fmt.Fprintln(w, verdict(sum).Text)
	fmt.Fprintln(w)
	writeTable(w, lines)
	if guarded := GuardedWrites(h); len(guarded) > 0 {
		fmt.Fprintln(w)
		for _, g := range guarded {
			fmt.Fprintln(w, g)
		}
	}
	if groups := Groups(h); len(groups) > 0 {
		fmt.Fprintln(w)
		for _, g := range groups {
			fmt.Fprintln(w, g)
		}
	}
	fmt.Fprintln(w)
	for _, b := range Backs(h) {
		fmt.Fprintln(w, b)
	}
	if found := findings(all); len(found) > 0 {
		fmt.Fprintln(w)
		for _, f := range found {
			fmt.Fprintf(w, "%7s  %s  %s: %s\n", f.When, f.Store, f.Rule, strings.ReplaceAll(f.Text, "\n", "\n    "))
		}
	}
	return w.Flush()
}

// A Sum is what a history comes to, counted as Figures counts.
type Sum struct{ Elections, Overlaps, Stale int }

// Total returns the sum of a history.
func Total(h *history.History) Sum {
	_, _, sum := count(stories(h, nil))
	return Sum{sum.Elections, sum.Overlaps, sum.Stale}
}

var headings = []string{"", "faults", "elections", "lost",
	"takeovers", "median", "longest", "bound", "handovers", "median", "longest", "bound",
	"no leader", "refused", "accepted", "stale", "violations", "overlaps", "length"}

func cells(name string, f *figures) []string {
	line := []string{name, number(f.Faults), number(f.Elections), number(f.Lost)}
	for _, g := range []gaps{f.Takeovers, f.Handovers} {
		if g.Number() == 0 {
			line = append(line, "-", "", "", "")
			continue
		}
		line = append(line, number(g.Number()), length(g.Median()), length(g.Longest()), length(g.Bound()))
	}
	line = append(line, some(f.Longest), number(f.Refused), number(f.Accepted), number(f.Stale), number(f.Violations), number(f.Overlaps), some(f.Overlap))
	return line
}

// number writes a count, and a dash for none so that the others stand out.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func some(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return length(d)
}

// writeTable writes lines of cells: the first column to the left, the others to
// the right.
func writeTable(w io.Writer, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, c := range l {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, l := range lines {
		var b strings.Builder
		for i, c := range l {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i == 0 {
				b.WriteString(c + pad)
			} else {
				b.WriteString("  " + pad + c)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
