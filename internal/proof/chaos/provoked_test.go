package chaos

import (
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

func TestUnprovoked(t *testing.T) {
	at := func(kind history.Kind, detail string, begun, done time.Duration) history.Event {
		return history.Event{Election: "e", Kind: kind, Detail: detail, Before: begun, At: done}
	}
	const ttl, revoked, cut = 10, "store: permission revoked", "network: cut"
	for name, c := range map[string]struct {
		events []history.Event
		want   string // the rules, or empty
	}{
		"garbage that nobody wrote":          {[]history.Event{at(history.Foreign, "", 1, 2)}, "bad/garbage"},
		"garbage before it was written":      {[]history.Event{at(history.Foreign, "", 1, 2), at(history.Spoiled, "", 3, 4)}, "bad/garbage"},
		"garbage while it is written":        {[]history.Event{at(history.Foreign, "", 2, 2), at(history.Spoiled, "", 1, 4)}, ""},
		"garbage that is still there":        {[]history.Event{at(history.Spoiled, "", 1, 4), at(history.Foreign, "", 90, 91)}, ""},
		"garbage long after it was removed":  {[]history.Event{at(history.Spoiled, "", 1, 4), at(history.Removed, "", 5, 6), at(history.Foreign, "", 17, 18)}, "bad/garbage"},
		"garbage in a plan":                  {[]history.Event{at(history.Fault, "plan: garbage", 1, 1), at(history.Foreign, "", 2, 2)}, ""},
		"garbage long after one in a plan":   {[]history.Event{at(history.Fault, "plan: garbage", 1, 1), at(history.Healed, "plan: garbage", 2, 2), at(history.Foreign, "", 13, 13)}, "bad/garbage"},
		"refused although nothing broke":     {[]history.Event{at(history.Denied, "", 2, 2)}, "auth/denied"},
		"refused while the network is cut":   {[]history.Event{at(history.Fault, cut, 1, 1), at(history.Denied, "", 2, 2)}, "auth/denied"},
		"refused while the store starts":     {[]history.Event{at(history.Fault, "store: restart", 1, 1), at(history.Denied, "", 2, 2)}, "auth/denied"},
		"refused when it was revoked":        {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Denied, "", 2, 2)}, ""},
		"refused before it was revoked":      {[]history.Event{at(history.Denied, "", 2, 2), at(history.Fault, revoked, 3, 3)}, "auth/denied"},
		"refused just after it was given":    {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Healed, revoked, 2, 3), at(history.Denied, "", 13, 14)}, ""},
		"refused long after it was given":    {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Healed, revoked, 2, 3), at(history.Denied, "", 14, 15)}, "auth/denied"},
		"asked in time, and refused late":    {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Healed, revoked, 2, 3), at(history.Denied, "", 12, 99)}, ""},
		"refused by a try to connect before": {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Healed, revoked, 2, 3), at(history.Denied, "load: no answer; the last try: no right", 14, 15)}, ""},
		"refused when another fault is over": {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Fault, cut, 2, 2), at(history.Healed, cut, 3, 3), at(history.Denied, "", 90, 90)}, ""},
		"revoked twice, refused in between":  {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Healed, revoked, 2, 2), at(history.Denied, "", 40, 41), at(history.Fault, revoked, 50, 50), at(history.Denied, "", 51, 51)}, "auth/denied"},
		"the replica is tried first":         {[]history.Event{{Election: "pair", Kind: history.Fault, Detail: cut, Before: 1, At: 1}, {Election: "pair", Kind: history.Denied, Before: 2, At: 2}}, ""},
		"a server that became a replica":     {[]history.Event{at(history.Fault, "store: switchover", 1, 1), at(history.Denied, "", 2, 2)}, ""},
		"a store that cannot be reached":     {[]history.Event{at(history.Trouble, "load: no answer", 1, 1)}, ""},
		"revoked is no reason for garbage":   {[]history.Event{at(history.Fault, revoked, 1, 1), at(history.Foreign, "", 2, 2)}, "bad/garbage"},
		"garbage is no reason for a refusal": {[]history.Event{at(history.Spoiled, "", 1, 1), at(history.Denied, "", 2, 2)}, "auth/denied"},
		"each refusal counts":                {[]history.Event{at(history.Denied, "", 2, 2), at(history.Denied, "", 3, 3)}, "auth/deniedauth/denied"},
		"one that all partitions tell of":    {[]history.Event{at(history.Denied, "", 2, 2), {Election: "f", Kind: history.Denied, Before: 2, At: 2}}, "auth/denied"},
	} {
		h := &history.History{Events: c.events}
		for election, store := range map[string]string{"e": "redis", "f": "redis", "pair": Pair} {
			h.Elections = append(h.Elections, history.Election{Name: election, Store: store, Rules: history.Rules{TTL: ttl}})
		}
		got := ""
		for _, v := range unprovoked(h) {
			got += v.Rule
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTakesRights checks that a refusal is explained only by faults that take a right away,
// or the role of a server that takes writes.
func TestTakesRights(t *testing.T) {
	for _, f := range faults() {
		if f.refuses != takesRights(f.Name) {
			t.Errorf("%s is the name of a fault that takes rights, and of one that does not", f.Name)
		}
	}
}
