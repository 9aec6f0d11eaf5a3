package overlap

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/elector-go/elector/bench/peers"
)

// A row is a library in a scene.
type row struct {
	library peers.Library
	scene   scene
	figures []figure // of the rounds that took place
	errs    []error  // why others did not
}

// report prints the table, what its rows mean, and everything that is wrong. It
// returns whether that is anything, and whether it is only cases of other
// libraries that did not take place.
func report(out io.Writer, rows []*row, ttl time.Duration) error {
	fmt.Fprintf(out, "How long two processes believed that they led, TTL %v for all:\n\n", ttl)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "store\tcase\tlibrary\tleast\tmedian\tmost\telector\told leader until\tsuccessor from")
	for _, r := range rows {
		if r.library.Ours() {
			continue
		}
		least, median, most := spread(r.figures, func(f figure) time.Duration { return f.both })
		held, elected := middle(r.figures)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.library.Store, r.scene, r.library.Name,
			least, median, most, oursBeside(rows, r), held, elected)
	}
	t.Flush()
	fmt.Fprint(out, `
least … most      for how long both believed, of the rounds; "≥" where the old leader
                  still did when the round was over; only what is sure counts
elector           the same for this repository's library, on the same store in the same
                  case: the most of its rounds; whatever may be counts
old leader until  seconds from the cut until the old leader no longer believed, and
successor from    until its successor believed: medians

`)
	for _, r := range rows {
		fmt.Fprintf(out, "%s on %s, %s: %s\n", r.library.Name, r.library.Store, r.scene, meaning(r.figures))
	}
	fmt.Fprintln(out)
	told := map[string]bool{}
	for _, r := range rows {
		if l := r.library; !told[l.Name] {
			told[l.Name] = true
			fmt.Fprintf(out, "%s: %s %s. Believes while %s. Settings: %s.\n", l.Name, l.Module, l.Version(), l.Belief, l.Settings)
		}
	}
	fmt.Fprintln(out)
	var wrong error
	for _, r := range rows {
		for _, problem := range r.wrong() {
			if wrong == nil {
				wrong = errPeers
			}
			if r.library.Ours() {
				wrong = errWrong
			}
			fmt.Fprintf(out, "WRONG: %s on %s, %s: %s\n", r.library.Name, r.library.Store, r.scene, problem)
		}
	}
	if wrong == nil {
		fmt.Fprintln(out, "Every case took place, and nowhere did two processes lead at once with elector.")
	}
	return wrong
}

var (
	errWrong       = errors.New("not everything was as promised, see above")
	errPeers error = &peers.Failure{Library: "others", Store: "their stores", Err: errors.New("cases did not take place, see above")}
)

// wrong returns what must not be.
func (r *row) wrong() (all []string) {
	for _, err := range r.errs {
		all = append(all, err.Error())
	}
	if len(r.figures) == 0 && len(r.errs) == 0 {
		all = append(all, "nothing was measured")
	}
	for _, f := range r.figures {
		if r.library.Ours() && f.met {
			all = append(all, "two processes led at once for "+seconds(f.both))
		}
	}
	return all
}

// oursBeside is our library's figure on the same store in the same scene.
func oursBeside(rows []*row, beside *row) string {
	for _, r := range rows {
		if !r.library.Ours() || r.library.Store != beside.library.Store || r.scene != beside.scene {
			continue
		}
		_, _, most := spread(r.figures, func(f figure) time.Duration { return f.both })
		return most
	}
	return "–"
}

// spread prints the least, the median and the largest of a figure.
func spread(figures []figure, of func(figure) time.Duration) (least, median, most string) {
	if len(figures) == 0 {
		return "–", "–", "–"
	}
	sorted := slices.SortedFunc(slices.Values(figures), func(a, b figure) int { return cmp.Compare(of(a), of(b)) })
	show := func(f figure) string {
		if f.atLeast {
			return "≥ " + seconds(of(f))
		}
		return seconds(of(f))
	}
	return show(sorted[0]), show(sorted[len(sorted)/2]), show(sorted[len(sorted)-1])
}

// middle prints the medians of when the old leader ceased to believe, and when
// the successor began.
func middle(figures []figure) (held, elected string) {
	_, held, _ = spread(figures, func(f figure) time.Duration { return f.held })
	sure := slices.Clone(figures)
	for i := range sure {
		sure[i].atLeast = false
	}
	_, elected, _ = spread(sure, func(f figure) time.Duration { return f.elected })
	return held, elected
}

// meaning says in a line what a row shows.
func meaning(figures []figure) string {
	if len(figures) == 0 {
		return "nothing was measured"
	}
	held, elected := middle(figures)
	_, median, most := spread(figures, func(f figure) time.Duration { return f.both })
	if !slices.ContainsFunc(figures, func(f figure) bool { return f.met }) {
		return fmt.Sprintf("never two leaders: the old one stopped %s after the cut, the next one led after %s", held, elected)
	}
	if slices.ContainsFunc(figures, func(f figure) bool { return f.atLeast }) {
		return fmt.Sprintf("two leaders for %s: the old one was not told while it was watched, the next one led %s after the cut", median, elected)
	}
	return fmt.Sprintf("two leaders for %s, at most %s: the old one stopped %s after the cut, the next one led after %s", median, most, held, elected)
}

// outcome is a round in a line.
func outcome(f figure, err error) string {
	if err != nil {
		return "DID NOT TAKE PLACE: " + err.Error()
	}
	return meaning([]figure{f})
}

func seconds(d time.Duration) string {
	if d == 0 {
		return "0 s"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}
