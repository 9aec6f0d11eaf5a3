package annex

import (
	"strconv"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Reason is why a term ended, as its code in the record: empty while the term goes
// on. A newer version may write others than these; they are kept.
type Reason string

// The reasons for the end of a term.
const (
	Resigned  Reason = "r"
	Requested Reason = "q" // resigned upon a request
	Unhealthy Reason = "u"
	Lost      Reason = "l" // the work took too long to stop
	Deposed   Reason = "d"
	Cancelled Reason = "c" // a campaign that won after it was cancelled, and never led
	Expired   Reason = "e" // a candidate took over, perhaps the same one
	Paused    Reason = "p" // that of a process that has paused the election
	Unknown   Reason = "-"
)

var words = map[Reason]string{
	"": "", Resigned: "resigned", Requested: "requested", Unhealthy: "unhealthy", Lost: "lost",
	Deposed: "deposed", Cancelled: "cancelled", Expired: "expired", Paused: "paused", Unknown: "unknown",
}

// String returns the reason in a word.
func (r Reason) String() string {
	if word, ok := words[r]; ok {
		return word
	}
	return words[Unknown]
}

// HistoryName is the extension with the latest terms.
const HistoryName = "k_history"

// A Term is the time for which one candidate led.
type Term struct {
	ID         string    // of the leader, as Legible returns it; empty if it is not known
	Token      uint64    // of its acquisition
	Start, End time.Time // zero if not known
	Reason     Reason    // empty while the term goes on
}

// A History is the latest terms, the oldest first.
//
// The record has no start that is in the token, and no term that goes on and began
// then: all of that term is in the record already. So before its second term an election
// mostly has no history, which each renewal would send.
type History []Term

// HistoryOf returns the history of a record. Its last term is that of the record's
// acquisition; no other goes on.
func HistoryOf(r backends.Record) History {
	value, _ := r.Extensions.Get(HistoryName)
	h := parse(value)
	if !r.Exists() {
		return h
	}
	if len(h) > 0 && h[len(h)-1].Token > r.Token {
		h = nil
	}
	if len(h) == 0 || h[len(h)-1].Token < r.Token {
		h = append(h, newTerm(r.Holder, r.Token))
	}
	for i := range h {
		switch t := &h[i]; {
		case t.Reason != "":
		case i < len(h)-1 || r.Vacant(): // a version that keeps no history has ended it
			t.Reason = Unknown
		default:
			t.ID = Legible(r.Holder)
		}
	}
	return h.latest()
}

// latest returns the terms that a history may have.
func (h History) latest() History { return h[max(0, len(h)-MaxTerms):] }

func newTerm(id string, token uint64) Term {
	return Term{ID: Legible(id), Token: token, Start: StartOf(token)}
}

// StartOf returns the time of day that is in a token, zero if there is none.
func StartOf(token uint64) time.Time {
	t := time.UnixMilli(int64(token / 1000))
	if t.Before(time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)) || t.After(time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)) {
		return time.Time{}
	}
	return t
}

// began sets the start, unless that is not known or within a second of the one in the
// token.
func (t *Term) began(start time.Time) {
	if !start.IsZero() && (t.Start.IsZero() || t.Start.Sub(start).Abs() >= time.Second) {
		t.Start = start
	}
}

// begin returns the history after an acquisition. The former term ends now if it was
// not closed.
func (h History) begin(id string, token uint64, now time.Time) History {
	if n := len(h); n > 0 && h[n-1].Reason == "" {
		h[n-1].Reason, h[n-1].End = Expired, now
	}
	t := newTerm(id, token)
	t.began(now)
	return append(h, t)
}

// end returns the history after a release.
func (h History) end(why Reason, now time.Time) History {
	h[len(h)-1].Reason, h[len(h)-1].End = why, now
	return h
}

// into returns the extensions with the history in place of the one that they have,
// without its oldest terms if there is no room for them.
func (h History) into(x backends.Extensions) backends.Extensions {
	x = x.Without(HistoryName)
	for h = h.latest(); len(h) > 0; h = h[1:] {
		if text := h.String(); text == "" {
			return x
		} else if len(text) <= MaxHistory {
			if with, err := x.With(HistoryName, text); err == nil {
				return with
			}
		}
	}
	return x
}

// String returns the value of the extension.
func (h History) String() string {
	var texts []string
	for i, t := range h {
		start := instant(t.Start)
		if t.Start.Equal(StartOf(t.Token)) {
			start = ""
		}
		if start == "" && t.Reason == "" && i == len(h)-1 {
			break
		}
		texts = append(texts, Join(strconv.FormatUint(t.Token, 36), start, instant(t.End), string(t.Reason), t.ID))
	}
	return strings.Join(texts, ";")
}

// parse reads what String wrote. It returns none for anything else.
func parse(value string) (h History) {
	if value == "" {
		return nil
	}
	for _, text := range strings.Split(value, ";") {
		f := Split(text, 5)
		token, err := strconv.ParseUint(f[0], 36, 64)
		if err != nil || token == 0 || token > backends.MaxToken || !shown(f[4]) {
			return nil
		}
		t := newTerm(f[4], token)
		if t.Reason = Reason(f[3]); t.Reason != "" {
			t.End = parseInstant(f[2])
		}
		t.began(parseInstant(f[1]))
		h = append(h, t)
	}
	return h
}

// instant returns a time of day as text: milliseconds since 1970.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 36)
}

// parseInstant returns the zero time for what instant does not write, and for times
// that JSON cannot hold in every zone: before 1970, and of the year 9999 and later.
func parseInstant(s string) time.Time {
	ms, err := strconv.ParseInt(s, 36, 64)
	if t := time.UnixMilli(ms); err == nil && ms > 0 && t.UTC().Year() < 9999 {
		return t
	}
	return time.Time{}
}
