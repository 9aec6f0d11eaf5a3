package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// symbols are the marks on a lane, in the order of the legend.
var symbols = []struct{ name, legend string }{
	{"killed", "killed (SIGKILL)"},
	{"terminated", "told to end (SIGTERM)"},
	{"over", "the process ended"},
	{"exited", "the process failed"},
	{"fatal", "gave up"},
	{"opened", "begins to campaign"},
	{"lost", "lease lost"},
	{"resigned", "lease resigned"},
	{"refused", "stale write refused"},
	{"accepted", "stale write accepted"},
	{"failed", "write failed"},
	{"disbelieved", "a swap was applied, and not believed"},
	{"record", "record removed, rolled back or spoiled"},
	{"edited", "record edited by hand"},
}

// A markAt is a mark, and all of its kind that cannot be told apart from it.
type markAt struct {
	symbol string
	x, y   float64
	titles []string
	number int
}

// marks draws what happened to a candidate at one moment.
func (r *row) marks(l *life) {
	var list []*markAt
	latest := map[string]*markAt{}
	top, middle, bottom := r.y+1, r.y+barHeight/2, r.y+barHeight+2
	put := func(symbol string, e history.Event, y float64, title string) {
		x := r.x(e.At)
		m := latest[symbol]
		if m == nil || x-m.x > 3 {
			m = &markAt{symbol: symbol, x: x, y: y}
			latest[symbol] = m
			list = append(list, m)
		}
		if m.number++; m.number <= 5 {
			m.titles = append(m.titles, fmt.Sprintf("%s at %s", title, r.since(e.At)))
		}
	}
	rejected := map[uint64]bool{}
	for _, e := range r.events {
		if e.Candidate != l.candidate {
			continue
		}
		write := fmt.Sprintf("write %d with token %v", e.Number, e.Token)
		switch e.Kind {
		case history.Started:
			put("started", e, middle, "started")
		case history.Opened:
			put("opened", e, middle, "begins to campaign")
		case history.Waits:
			put("waits", e, middle, fmt.Sprintf("sees %s lead with token %v", e.Holder, e.Token))
		case history.Killed:
			put("killed", e, middle, "killed")
		case history.Terminated:
			put("terminated", e, top, "told to end")
		case history.Exited:
			if l.how == history.Killed {
				continue
			}
			if e.Detail == "" {
				put("over", e, middle, "the process ended in order")
			} else {
				put("exited", e, middle, "the process ended: "+e.Detail)
			}
		case history.Fatal:
			put("fatal", e, middle, "gave up: "+e.Detail)
		case history.Ended:
			symbol := "resigned"
			if strings.HasPrefix(e.Detail, "lost") {
				symbol = "lost"
			}
			put(symbol, e, middle, fmt.Sprintf("token %v %s", e.Token, e.Detail))
		case history.Discarded:
			put("disbelieved", e, middle, fmt.Sprintf("token %v: the store applied the swap, which is not believed: %s", e.Token, e.Detail))
		case history.Canceled:
			put("canceled", e, bottom, fmt.Sprintf("token %v: the worker knows that the lease is over", e.Token))
		case history.Released:
			title := fmt.Sprintf("token %v: the store was told", e.Token)
			if e.Detail != "" {
				title += " in vain: " + e.Detail
			}
			put("released", e, bottom, title)
		case history.Rejected:
			rejected[e.Number] = true
			put("refused", e, bottom, write+" refused as stale")
		case history.Refused:
			if !rejected[e.Number] {
				put("refused", e, bottom, write+" refused as stale")
			}
		case history.Failed:
			put("failed", e, bottom, write+" failed: "+e.Detail)
		case history.Stale:
			put("refused", e, bottom, write+" to the store refused as stale")
		case history.Accepted, history.Committed:
			if slices.Contains(r.s.stale, e) {
				put("accepted", e, middle, write+" ACCEPTED THOUGH STALE")
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *markAt) int { return cmp.Compare(rank(a.symbol), rank(b.symbol)) })
	for _, m := range list {
		title := strings.Join(m.titles, "; ")
		if more := m.number - len(m.titles); more > 0 {
			title += fmt.Sprintf("; and %d more", more)
		}
		r.mark(m.symbol, m.x, m.y, title)
	}
}

// rank is the order in which marks are drawn: what matters more covers the rest.
func rank(symbol string) int {
	return slices.Index([]string{"waits", "started", "opened", "over", "canceled", "released", "disbelieved", "lost", "resigned", "terminated", "exited", "failed", "killed", "fatal", "refused", "accepted"}, symbol)
}
