package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/setup"
)

// refusals are the kinds of events that tell of a refusal, and the rules that such an event
// breaks if nothing explains it.
var refusals = map[history.Kind]string{history.Foreign: "bad/garbage", history.Denied: "auth/denied"}

// A reason explains refusals of a kind from when it began until it ended.
type reason struct {
	kind        history.Kind
	of          history.Event // that it began with
	from, until time.Duration
}

// mostRefusals bounds how many violations of one rule are reported of one election.
const mostRefusals = 5

const forever = time.Duration(1<<62 - 1)

// unprovoked returns what candidates were told by the store although nobody had given it a
// reason just then: that the record is none, or that they may not use it.
func unprovoked(h *history.History) (violations []checker.Violation) {
	all := reasons(h)
	ttl := map[string]time.Duration{}
	for _, e := range h.Elections {
		ttl[e.Name] = e.Rules.TTL
	}
	type refusal struct {
		candidate string
		at        time.Duration
	}
	told := map[refusal]bool{} // what happens to a group happens to each of its partitions
	count := map[string]int{}
	for _, e := range h.Events {
		rule, is := refusals[e.Kind]
		r := refusal{e.Candidate, e.At}
		if !is || told[r] || explained(e, all, ttl[e.Election]) {
			continue
		}
		told[r] = true
		if count[e.Election+rule]++; count[e.Election+rule] > mostRefusals {
			continue
		}
		violations = append(violations, checker.Violation{Election: e.Election, Rule: rule, At: e.At, Events: []history.Event{e},
			Text: fmt.Sprintf("candidate %s was refused for no reason: %s", e.Candidate, e.Detail)})
	}
	return violations
}

// explained reports whether there is a reason for a refusal: one that began before the
// candidate was told, and ended after its request was sent, or not long before. A candidate
// may learn of the end a little later: as when it has read an old password just before. It
// reports its last try to connect for as long as the next one lasts.
func explained(refused history.Event, all []*reason, margin time.Duration) bool {
	if strings.Contains(refused.Detail, "; the last try: ") {
		margin += setup.Patience
	}
	return slices.ContainsFunc(all, func(r *reason) bool {
		return r.kind == refused.Kind && r.from <= refused.At && refused.Before-margin <= r.until
	})
}

// reasons returns what explains refusals.
func reasons(h *history.History) (all []*reason) {
	pairs := map[string]bool{}
	for _, e := range h.Elections {
		pairs[e.Name] = e.Store == Pair
	}
	begins := func(kind history.Kind, e history.Event) {
		all = append(all, &reason{kind: kind, of: e, from: e.Before, until: forever})
	}
	ends := func(e history.Event, of func(begun history.Event) bool) {
		for _, r := range all {
			if r.until == forever && r.of.Election == e.Election && of(r.of) {
				r.until = e.At
			}
		}
	}
	for _, e := range h.Events {
		switch {
		case e.Kind == history.Spoiled, e.Kind == history.Fault && ofGroup(e.Detail):
			begins(history.Foreign, e)
		case e.Kind == history.Fault && (takesRights(e.Detail) || pairs[e.Election] && endsConnections(e.Detail)):
			begins(history.Denied, e)
		case e.Kind == history.Healed:
			ends(e, func(begun history.Event) bool { return begun.Kind == history.Fault && begun.Detail == e.Detail })
		case e.Kind == history.Removed:
			ends(e, func(begun history.Event) bool { return begun.Kind == history.Spoiled })
		}
	}
	return all
}

// endsConnections reports whether a fault ends connections: of two servers a candidate may try
// the replica first when it connects again.
func endsConnections(fault string) bool {
	return strings.HasPrefix(fault, "network: ") || strings.HasPrefix(fault, "log: ")
}

// ofGroup reports whether a fault is one of a group's records, which no candidate may
// know then.
func ofGroup(fault string) bool {
	return slices.ContainsFunc(groupFaults, func(f Fault) bool { return f.Name == fault })
}

// takesRights reports whether the store refuses candidates while a fault lasts.
func takesRights(fault string) bool {
	return slices.ContainsFunc(faults(), func(f Fault) bool { return f.Name == fault && f.refuses })
}
