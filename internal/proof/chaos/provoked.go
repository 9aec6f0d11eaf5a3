package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/checker"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/task"
)

// unprovoked returns what candidates were told by the store before anybody had
// given it a reason: that the record is none, or that they may not use it.
func unprovoked(h *history.History) (violations []checker.Violation) {
	since := map[string]time.Duration{} // the first reason for each, from when it began
	for _, e := range h.Events {
		kind := ""
		switch {
		case e.Kind == history.Spoiled, e.Kind == history.Fault && ofGroup(e.Detail):
			kind = task.Foreign
		case e.Kind == history.Fault && strings.HasPrefix(e.Detail, "store: "): // one of them revokes, and a server that starts or ends may refuse anything
			kind = task.Denied
		default:
			continue
		}
		if begun, ok := since[kind]; !ok || e.Before < begun {
			since[kind] = e.Before
		}
	}
	for _, e := range h.Events {
		for kind, rule := range map[string]string{task.Foreign: "bad/garbage", task.Denied: "auth/denied"} {
			if e.Kind != history.Trouble || !strings.HasPrefix(e.Detail, kind) {
				continue
			}
			if begun, ok := since[kind]; !ok || e.At < begun {
				violations = append(violations, checker.Violation{Election: e.Election, Rule: rule, At: e.At, Events: []history.Event{e},
					Text: fmt.Sprintf("candidate %s was refused for no reason: %s", e.Candidate, e.Detail)})
			}
		}
	}
	return violations
}

// ofGroup reports whether a fault is one of a group's records, which no candidate may
// know then.
func ofGroup(fault string) bool {
	return slices.ContainsFunc(groupFaults, func(f Fault) bool { return f.Name == fault })
}
