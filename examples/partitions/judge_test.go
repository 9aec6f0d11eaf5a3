package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/examples/internal/stage"
	"github.com/elector-go/elector/partition"
)

const ms = time.Millisecond

// A happening is everything that the judge knows.
type happening struct {
	events  []stage.Event
	items   [][]string
	counted [][]entry
	waited  int
}

// asPromised is a story in which everything was as promised. A owns partition 3
// until it moves to B; C is stopped, and D owns partition 5 after it. Times are in
// milliseconds, tokens 100, 200, ….
func asPromised() happening {
	lease := func(process, kind string, boot time.Duration, p int, token elector.Token, left time.Duration) stage.Event {
		return stage.Event{Process: process, Kind: kind, Boot: boot * ms, Partition: p, Token: token, Valid: left > 0, Left: left * ms}
	}
	h := happening{events: []stage.Event{
		lease("A", owns, 1000, 3, 100, 1700),
		lease("C", owns, 1010, 5, 100, 1700), // tokens of two partitions have nothing in common
		lease("A", renewed, 1600, 3, 100, 1800),
		lease("C", renewed, 1600, 5, 100, 1800), // until 3400
		{Process: "A", Kind: told, Boot: 1900 * ms, Partition: 3, Token: 100},
		lease("A", gaveUp, 2000, 3, 100, 0),
		lease("B", owns, 2030, 3, 200, 1500),
		{Process: "C", Kind: stopped, Boot: 1700 * ms},
		lease("D", owns, 3900, 5, 300, 1800),
		{Process: "C", Kind: stage.Continued, Boot: 4500 * ms},
		lease("C", refused, 4510, 5, 100, 0),
		lease("C", gaveUp, 4520, 5, 100, 0),
	}, waited: 1}
	for range partitions {
		h.items, h.counted = append(h.items, nil), append(h.counted, nil)
	}
	for i := range 200 {
		key := fmt.Sprint("order-", i)
		p := partition.Of(key, partitions)
		h.counted[p] = append(h.counted[p], entry{itemText(len(h.items[p]), key), elector.Token(100 * (1 + len(h.items[p])/2))})
		h.items[p] = append(h.items[p], key)
	}
	return h
}

const stopped = stage.Stopped

func (h happening) judged() *verdict {
	v := judge(stage.InOrder(h.events), h.items, h.counted)
	v.judgeStory(h.events, h.waited)
	return v
}

func (h happening) find(process, kind string) *stage.Event {
	return &h.events[slices.IndexFunc(h.events, func(e stage.Event) bool { return e.Process == process && e.Kind == kind })]
}

func TestJudgeFindsNothingWrong(t *testing.T) {
	v := asPromised().judged()
	if len(v.problems) > 0 {
		t.Errorf("problems: %q", v.problems)
	}
	if v.leases != 4 || v.overlaps != 0 || v.items != 200 || v.counted != 200 || v.tried != 1 || v.refused != 1 {
		t.Errorf("verdict: %+v", v)
	}
}

func TestJudgeFindsEachFault(t *testing.T) {
	for _, fault := range []struct {
		name  string
		wrong func(*happening)
		want  string
	}{
		{"overlap after a stop", func(h *happening) { h.find("D", owns).Boot = 3300 * ms },
			"partition 5: the leases of C (token 100) and D (token 300) were both valid for 100ms"},
		{"overlap at a move", func(h *happening) { h.find("A", gaveUp).Boot = 2050 * ms },
			"partition 3: the leases of A (token 100) and B (token 200) were both valid for 20ms"},
		{"valid after it was given up", func(h *happening) {
			h.events = append(h.events, stage.Event{Process: "A", Kind: renewed, Boot: 2200 * ms, Partition: 3, Token: 100, Valid: true})
		}, "were both valid for 170ms"},
		{"comes back to life", func(h *happening) {
			e := h.find("C", refused)
			e.Valid, e.Left = true, 50*ms
		}, "still believed in its lease"},
		{"token goes back", func(h *happening) { h.find("D", owns).Token = 50 }, "D owns it with token 50 after C with token 100"},
		{"token shared", func(h *happening) { h.find("D", owns).Token = 100 }, "D owns it with token 100 after C with token 100"},
		{"lost item", func(h *happening) { h.counted[5] = h.counted[5][:len(h.counted[5])-1] }, "is lost"},
		{"lost in the middle", func(h *happening) { h.counted[5] = slices.Delete(h.counted[5], 1, 2) }, "is lost"},
		{"counted twice", func(h *happening) { h.counted[5] = append(h.counted[5], h.counted[5][1]) }, "was counted 2 times"},
		{"in another order", func(h *happening) {
			h.counted[5][0].text, h.counted[5][1].text = h.counted[5][1].text, h.counted[5][0].text
		}, "partition 5: line 0 of the ledger is item"},
		{"stale request accepted", func(h *happening) { h.counted[5][3].token = 100 }, "was counted with token 100 after token 200"},
		{"unknown item", func(h *happening) { h.counted[5] = append(h.counted[5], entry{"99 order-x", elector.MaxToken}) }, "never came"},
		{"in the wrong partition", func(h *happening) {
			h.items[5], h.items[6], h.counted[5], h.counted[6] = h.items[6], h.items[5], h.counted[6], h.counted[5]
		}, "belongs to partition"},
		{"nothing refused", func(h *happening) { h.find("C", refused).Kind = failed }, "1 requests waited in the process that was stopped, and 0 late ones were refused"},
		{"nothing waited", func(h *happening) { h.waited = 0 }, "0 requests waited"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			h := asPromised()
			fault.wrong(&h)
			if v := h.judged(); !slices.ContainsFunc(v.problems, func(p string) bool { return strings.Contains(p, fault.want) }) {
				t.Errorf("problems %q; want one with %q", v.problems, fault.want)
			}
		})
	}
}

func TestSum(t *testing.T) {
	h := asPromised()
	before := "...A.C" + strings.Repeat(".", partitions-6)
	after := "...B.D" + strings.Repeat(".", partitions-6)
	got := sum(h.events, step{begun: 1700 * ms, before: before}, after)
	want := summary{moved: 2, took: 2200 * ms, without: 2200 * ms} // C's from 1700 to 3900
	if got != want {
		t.Errorf("the step took %+v; want %+v", got, want)
	}
}
