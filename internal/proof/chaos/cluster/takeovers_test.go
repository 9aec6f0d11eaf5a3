package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
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

func stall(at, left int) []history.Event {
	return []history.Event{{Kind: history.Stalled, Before: ms(at), At: ms(at), Left: ms(left)}}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// What must be found, and what must pass.
func TestTakeovers(t *testing.T) {
	for name, k := range map[string]struct {
		events []history.Event
		want   string // what the only violation says; none if empty
	}{
		"a takeover in time": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 1300, 2000)), ""},
		"a late takeover": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500)),
			"no candidate led for"},
		"late, as the machine stood still": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), stall(2500, 300), looksOf("B", 2, 3000, 3500)), ""},
		"late, as the store was down":      {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), storeAnswers(2000), looksOf("B", 2, 3700, 4000)), ""},
		"quicker than the question to the store": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500),
			[]history.Event{{Kind: history.Healed, Detail: answers, Before: ms(900), At: ms(3100)}}), ""},
		"quicker than the last server": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500),
			[]history.Event{{Kind: history.Fault, Before: ms(200), At: ms(3100)}, {Kind: history.Healed, Detail: answers, Before: ms(3100), At: ms(3200)}}), ""},
		"late, and then comes a fault": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500),
			[]history.Event{{Kind: history.Fault, Before: ms(3050), At: ms(3100)}, {Kind: history.Healed, Detail: answers, Before: ms(3100), At: ms(3200)}}),
			"no candidate led for"},
		"late, and a fault begins before it is over": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), looksOf("B", 2, 3000, 3500),
			[]history.Event{{Kind: history.Fault, Before: ms(2900), At: ms(3100)}, {Kind: history.Healed, Detail: answers, Before: ms(3100), At: ms(3200)}}),
			"no candidate led for"},
		"late, though the store was up": {slices.Concat(looksOf("A", 1, 100, 1000), lostAt("A", 1, 1001), storeAnswers(2000), looksOf("B", 2, 3900, 4000)),
			"no candidate led for"},
		"nobody wanted to": {slices.Concat(looksOf("A", 1, 100, 1000), looksOf("B", 2, 9000, 9500)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history.History{Elections: []history.Election{{Rules: history.RulesOf(time.Second, 0)}}, Events: k.events}
			h.Sort()
			found := takeovers(h)
			switch {
			case k.want == "" && len(found) > 0:
				t.Errorf("found %q, want nothing", found)
			case k.want != "" && (len(found) != 1 || !strings.Contains(found[0], k.want)):
				t.Errorf("found %q, want one that says %q", found, k.want)
			}
		})
	}
}
