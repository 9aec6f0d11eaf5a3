package chaos

import (
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/task"
)

func TestUnprovoked(t *testing.T) {
	at := func(kind history.Kind, detail string, begun, done time.Duration) history.Event {
		return history.Event{Election: "e", Kind: kind, Detail: detail, Before: begun, At: done}
	}
	for name, c := range map[string]struct {
		events []history.Event
		want   string // the rule, or empty
	}{
		"garbage that nobody wrote":        {[]history.Event{at(history.Trouble, task.Foreign+"x", 1, 2)}, "bad/garbage"},
		"garbage before it was written":    {[]history.Event{at(history.Trouble, task.Foreign+"x", 1, 2), at(history.Spoiled, "", 3, 4)}, "bad/garbage"},
		"garbage while it is written":      {[]history.Event{at(history.Trouble, task.Foreign+"x", 2, 2), at(history.Spoiled, "", 1, 4)}, ""},
		"refused although nothing broke":   {[]history.Event{at(history.Fault, "network: cut", 1, 1), at(history.Trouble, task.Denied+"x", 2, 2)}, "auth/denied"},
		"refused after it was revoked":     {[]history.Event{at(history.Fault, "store: permission revoked", 1, 1), at(history.Trouble, task.Denied+"x", 2, 2)}, ""},
		"garbage in a plan":                {[]history.Event{at(history.Fault, "plan: garbage", 1, 1), at(history.Trouble, task.Foreign+"x", 2, 2)}, ""},
		"a store that cannot be reached":   {[]history.Event{at(history.Trouble, "load: no answer", 1, 1)}, ""},
		"revoked is no reason for garbage": {[]history.Event{at(history.Fault, "store: permission revoked", 1, 1), at(history.Trouble, task.Foreign+"x", 2, 2)}, "bad/garbage"},
	} {
		got := ""
		for _, v := range unprovoked(&history.History{Events: c.events}) {
			got += v.Rule
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
