// Package checker says what is wrong with a history. It reports only what is
// beyond doubt: a slow machine, a process that was stopped between any two
// instructions, and a request with an unknown outcome are no violations.
//
// It relies on what the events promise (see history.Event), on all of them being
// told on one clock, and on the time of day not being set during the campaign.
package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// The rules that are no cases of their own.
const (
	Linearizable = "history/linearizable" // no order of the requests explains what they returned
	Undecided    = "history/undecided"    // whether there is such an order was not found out in time
	GaveUp       = "process/fatal"        // a candidate gave up, or its process did not end in order
)

// most bounds how many violations of one rule are reported of one election.
const most = 5

// Check returns what is wrong with a history, in the order in which it
// happened, at most five violations of each rule for each election, each with
// few events that show the same. To find those takes two seconds for each
// violation at most, and ten for all of them; after that they are more.
func Check(h *history.History) []Violation {
	var all []Violation
	shrinking := time.Now().Add(10 * time.Second)
	for _, e := range h.Elections {
		events := h.Of(e.Name)
		count := map[string]int{}
		for _, v := range checkElection(e.Name, e.Rules, events) {
			if count[v.Rule]++; count[v.Rule] > most {
				continue
			}
			v.Events = shrink(e, events, v, shrinking)
			if n := len(v.Events); v.At == 0 && n > 0 {
				v.At = v.Events[n-1].At
			}
			all = append(all, v)
		}
	}
	slices.SortStableFunc(all, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return all
}

// checkElection returns what is wrong with the events of one election. An order
// is only looked for if nothing else is wrong: it would say the same again.
func checkElection(name string, rules history.Rules, events []history.Event) []Violation {
	e := digest(name, rules, events)
	if found := e.checkDirectly(); len(found) > 0 {
		return found
	}
	return e.checkOrder(orderTimeout)
}

func (e *election) checkDirectly() (found []Violation) {
	for _, check := range direct {
		check(e, func(rule string, at time.Duration, format string, args ...any) {
			found = append(found, Violation{Election: e.name, Rule: rule, At: at, Text: fmt.Sprintf(format, args...)})
		})
	}
	slices.SortStableFunc(found, func(a, b Violation) int { return cmp.Compare(a.At, b.At) })
	return found
}

// A tell reports a violation.
type tell func(rule string, at time.Duration, format string, args ...any)

var direct = []func(*election, tell){
	(*election).checkOneValid,
	(*election).checkDeadlines,
	(*election).checkTokens,
	(*election).checkObserved,
	(*election).checkFence,
	(*election).checkGuard,
	(*election).checkAnswers,
	(*election).checkCanceled,
	(*election).checkRelease,
	(*election).checkEdited,
	(*election).checkExtensions,
	(*election).checkTakeover,
	(*election).checkBack,
	(*election).checkProcesses,
}

// isLook reports whether an event tells what a lease said: Valid and Left.
func isLook(k history.Kind) bool {
	switch k {
	case history.Acquired, history.Renewed, history.Checked, history.Writing:
		return true
	}
	return false
}
