package report

import (
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

func TestBacks(t *testing.T) {
	at := func(election string, kind history.Kind, seconds int, left time.Duration) history.Event {
		return history.Event{Election: election, Kind: kind, Before: time.Duration(seconds) * time.Second, At: time.Duration(seconds) * time.Second, Left: left}
	}
	h := &history.History{
		Elections: []history.Election{{Store: "etcd", Name: "p", Group: "g"}, {Store: "etcd", Name: "e"}, {Store: "file", Name: "f"}},
		Events: []history.Event{
			at("e", history.Wrote, 1, 0), // before any fault
			at("e", history.Quiet, 2, 9*time.Second), at("e", history.Wrote, 5, 0), at("e", history.Wrote, 20, 0),
			at("e", history.Quiet, 21, 9*time.Second), at("e", history.Wrote, 22, 0),
			at("e", history.Quiet, 23, 30*time.Second),
			at("p", history.Quiet, 24, 4*time.Second), at("p", history.Wrote, 25, 0),
		},
	}
	want := []string{
		"Groups in etcd: from the end of a fault to a write of each owner 1 s at most of 4 s allowed, 1 time.",
		"Elections in etcd: from the end of a fault to a write of a leader 3 s at most of 9 s allowed, 2 times; 0 ms at most of 30 s allowed, 0 times, and 1 time not before the end.",
	}
	all := Backs(h)
	if len(all) != len(want) {
		t.Fatal(all)
	}
	for i, b := range all {
		if b.String() != want[i] {
			t.Errorf("%q, want %q", b, want[i])
		}
	}
}
