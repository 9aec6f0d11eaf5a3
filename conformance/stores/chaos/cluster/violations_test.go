package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/conformance/stores/chaos/history"
)

// looksOf are a lease's looks, ten milliseconds apart, in milliseconds.
func looksOf(candidate string, token elector.Token, from, to int) (events []history.Event) {
	for at := from; at <= to; at += 10 {
		kind := history.Checked
		if at == from {
			kind = history.Acquired
		}
		events = append(events, history.Event{Candidate: candidate, Kind: kind, Token: token, Valid: true,
			Before: ms(at), At: ms(at) + time.Microsecond, Left: ms(900)})
	}
	return events
}

func lostAt(candidate string, token elector.Token, at int) []history.Event {
	return []history.Event{{Candidate: candidate, Kind: history.Ended, Token: token, Before: ms(at), At: ms(at), Detail: "lost: of old age"}}
}

func storeAnswers(at int) []history.Event {
	return []history.Event{{Kind: history.Healed, Detail: answers, Before: ms(at), At: ms(at)}}
}

func readAt(candidate string, token elector.Token, at int) []history.Event {
	return []history.Event{{Candidate: candidate, Kind: history.Observed, Token: token, Before: ms(at), At: ms(at + 1)}}
}

func stall(at, left int) []history.Event {
	return []history.Event{{Kind: history.Stalled, Before: ms(at), At: ms(at), Left: ms(left)}}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// What verify must find, and what it must let pass.
func TestViolations(t *testing.T) {
	for name, k := range map[string]struct {
		events []history.Event
		want   string // what the only violation says; none if empty
	}{
		"a takeover in time": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 1300, 2000)), ""},
		"two valid": {slices.Concat(looksOf("A", 1, 100, 1000), looksOf("B", 2, 990, 2000)),
			"two valid leases for 10ms"},
		"two valid, for an instant": {slices.Concat(looksOf("A", 1, 100, 1000), looksOf("B", 2, 500, 500)),
			"two valid leases"},
		"one token for two": {slices.Concat(looksOf("A", 1, 100, 1000), looksOf("B", 1, 1100, 2000)),
			"two leases have one token"},
		"a token that falls": {slices.Concat(looksOf("A", 2, 100, 1000), looksOf("B", 1, 1100, 2000)),
			"the later lease has the lower token"},
		"a late takeover": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500)),
			"nobody led for"},
		"late, as the machine stood still": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), stall(2500, 300), looksOf("B", 2, 3000, 3500)), ""},
		"late, as the store was down":      {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), storeAnswers(2000), looksOf("B", 2, 3700, 4000)), ""},
		"late, though the store was up": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), storeAnswers(2000), looksOf("B", 2, 3900, 4000)),
			"nobody led for"},
		"nobody wanted to": {slices.Concat(looksOf("A", 1, 100, 1000), looksOf("B", 2, 9000, 9500)), ""},
		"reads that go back": {slices.Concat(readAt("R", 2, 100), readAt("R", 1, 200)),
			"R read token 1"},
		"readers that differ": {slices.Concat(readAt("R", 2, 100), readAt("S", 1, 200), readAt("R", 3, 300)), ""},
		"a candidate that gives up": {[]history.Event{{Candidate: "A", Kind: history.Fatal, Detail: "no"}},
			"A gave up: no"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history.History{Elections: []history.Election{{Rules: history.RulesOf(time.Second, 0)}}, Events: k.events}
			h.Sort()
			found := violations(h)
			switch {
			case k.want == "" && len(found) > 0:
				t.Errorf("found %q, want nothing", found)
			case k.want != "" && (len(found) != 1 || !strings.Contains(found[0], k.want)):
				t.Errorf("found %q, want one that says %q", found, k.want)
			}
		})
	}
}
