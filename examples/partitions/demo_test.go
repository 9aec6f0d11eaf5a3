package main

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/fence/fencehttp"
)

// Partitions are shared once each has one owner that lives, and each owner its share.
func TestShared(t *testing.T) {
	d := &demo{members: map[string]*member{}, ledger: newLedger(), print: &printer{out: io.Discard}}
	note := func(process, kind string, partitions ...int) {
		for _, p := range partitions {
			d.take(stage.Event{Process: process, Kind: kind, Partition: p, Token: 1})
		}
	}
	var all, half []int
	for p := range partitions {
		if all = append(all, p); p%2 == 0 {
			half = append(half, p)
		}
	}
	for i, step := range []struct {
		process, kind string
		partitions    []int
		want          bool
	}{
		{"A", stage.Started, all[:1], false},
		{"A", owns, all[1:], false},
		{"A", owns, all[:1], true},
		{"B", stage.Started, all[:1], false},
		{"B", owns, half, false}, // reports of two processes come in any order
		{"A", gaveUp, half, true},
		{"B", stage.Stopped, all[:1], false},
		{"A", owns, half, true},
		{"B", stage.Continued, all[:1], false},
		{"B", gaveUp, half, false}, // it learns late of what it has lost
		{"A", gaveUp, half, false},
		{"B", owns, half, true},
	} {
		if d.members[step.process] == nil {
			d.members[step.process] = &member{waits: map[int]bool{}}
		}
		if note(step.process, step.kind, step.partitions...); d.shared() != step.want {
			t.Errorf("step %d, %s %s: shared is %v; the owners are %s", i, step.process, step.kind, !step.want, d.strip())
		}
	}
	d.take(stage.Event{Process: "B", Kind: stage.Killed})
	if got, want := d.strip(), strings.Repeat("bA", partitions/2); got != want {
		t.Errorf("the strip is %s; want %s", got, want)
	}
}

// The fence of a partition refuses an old owner, of that partition alone.
func TestLedgerRefuses(t *testing.T) {
	l := newLedger()
	handler := l.handler()
	for _, c := range []struct {
		partition, election string
		token               elector.Token
		status              int
	}{
		{"3", "items.p.3", 200, 200},
		{"3", "items.p.3", 100, 412},
		{"3", "items.p.5", 300, 400},
		{"5", "items.p.5", 100, 200},
		{"3", "items.p.3", 200, 200},
	} {
		r := httptest.NewRequest("POST", "/partitions/"+c.partition+"/items", strings.NewReader("0 order"))
		r.Header.Set(elector.TokenHeader, c.token.String())
		r.Header.Set(fencehttp.ElectionHeader, c.election)
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, r); w.Code != c.status {
			t.Errorf("partition %s, election %s, token %v: %d %s; want %d", c.partition, c.election, c.token, w.Code, w.Body, c.status)
		}
	}
	if n, _ := l.counts(3); n != 2 {
		t.Errorf("%d items were counted in partition 3; want 2", n)
	}
}
