package elector

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Term is the time for which one candidate led an election, or a part of it that
// is known. The times are times of day of the processes that recorded them: they
// are for people, and decide nothing.
type Term struct {
	ID    string    // of the leader, at most 64 bytes of it, with "?" for what cannot be printed; empty if it is not known
	Token Token     // of its acquisition
	Start time.Time // often that in the token; zero if it is not known
	End   time.Time // zero while the term goes on, or if it is not known

	// Reason is why the term ended: "resigned", "requested" (see RequestResign),
	// "unhealthy", "lost" (and released once the work had stopped), "deposed",
	// "cancelled" (a campaign that won after it was cancelled, and never led),
	// "expired" (another candidate took over, at End), or "unknown". It is empty
	// while the term goes on.
	Reason string
}

// reasons are what the record keeps of the reasons.
var reasons = map[string]string{
	"r": "resigned", "q": "requested", "u": "unhealthy", "l": "lost", "d": "deposed", "c": "cancelled", "e": "expired", "-": "unknown",
}

// historyName is the extension with the latest terms.
const historyName = "k_history"

// The record and its history stay below a kilobyte with IDs and values of ordinary
// length: DynamoDB counts a write unit for each.
const (
	mostTerms   = 8
	mostHistory = 512 // bytes
	mostTermID  = 64  // bytes
)

// History reads the record once and returns the latest terms, the oldest first: at
// most eight, and fewer if IDs are long. Every acquisition and release records
// its term with the same write. A version of this library that keeps no history leaves
// gaps: of the terms that it has led only the last one is shown, without an end and
// perhaps without an ID, and the crashed leader that it replaced may not be. The history
// is lost with the record. History blocks as Leader does.
func (e *Elector) History(ctx context.Context) ([]Term, error) {
	if err := e.begin(ctx); err != nil {
		return nil, e.fail("read", err)
	}
	defer e.active.Done()
	r, f := e.load(ctx, e.o.RequestTimeout, looking)
	if f != nil {
		return nil, e.fail("read", f.err)
	}
	var terms []Term
	for _, t := range historyOf(r) {
		terms = append(terms, Term{ID: t.id, Token: Token(t.token), Start: t.start.time(), End: t.end.time(), Reason: reasons[t.why]})
		if t.why != "" && reasons[t.why] == "" {
			terms[len(terms)-1].Reason = "unknown"
		}
	}
	return terms, nil
}

// A term is a Term as the record keeps it.
type term struct {
	id         string
	token      uint64
	start, end instant
	why        string // a key of reasons; empty while the term goes on
}

// An instant is a time of day in milliseconds since 1970, 0 if it is not known.
type instant int64

func (i instant) time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(i))
}

// today returns the time of day.
func (e *Elector) today() instant { return instant(e.clock.Now().Wall / time.Millisecond) }

// instantOf returns the time of day that is in a token.
func instantOf(token uint64) instant {
	if wall := time.Duration(token) * time.Microsecond; wall > since2020 && wall < until2200 {
		return instant(wall / time.Millisecond)
	}
	return 0
}

// A history is the latest terms, the oldest first.
//
// The record keeps no start that is in the token, and no term that goes on and began
// then: all of that term is in the record already. So before its second term an election
// mostly has no history, which each renewal would send.
type history []term

// historyOf returns the history of a record. Its last term is that of the record's
// acquisition.
func historyOf(r backends.Record) history {
	value, _ := r.Extensions.Get(historyName)
	h := parseHistory(value)
	if !r.Exists() {
		return h
	}
	if len(h) > 0 && h[len(h)-1].token > r.Token {
		h = nil
	}
	if len(h) == 0 || h[len(h)-1].token < r.Token {
		h = append(h, newTerm(r.Holder, r.Token))
	}
	switch last := &h[len(h)-1]; {
	case last.token != r.Token || last.why != "":
	case r.Vacant(): // a version that keeps no history has released it
		last.why = "-"
	default:
		last.id = legible(r.Holder, mostTermID)
	}
	return h.latest()
}

// latest returns the terms that a history may have.
func (h history) latest() history { return h[max(0, len(h)-mostTerms):] }

func newTerm(id string, token uint64) term {
	return term{id: legible(id, mostTermID), token: token, start: instantOf(token)}
}

// began sets the start, unless that is not known or within a second of the one in the
// token.
func (t *term) began(start instant) {
	if start != 0 && (t.start == 0 || max(t.start-start, start-t.start) >= 1000) {
		t.start = start
	}
}

// parseHistory reads what String wrote. It returns none for anything else.
func parseHistory(value string) (h history) {
	if value == "" {
		return nil
	}
	for _, text := range strings.Split(value, ";") {
		f := split(text, 5)
		token, err := strconv.ParseUint(f[0], 36, 64)
		if err != nil || token == 0 || token > backends.MaxToken || f[4] != legible(f[4], mostTermID) {
			return nil
		}
		t := newTerm(f[4], token)
		if t.why = f[3]; t.why != "" {
			t.end = parseInstant(f[2])
		}
		t.began(parseInstant(f[1]))
		h = append(h, t)
	}
	return h
}

func (h history) String() string {
	var texts []string
	for i, t := range h {
		start := t.start.String()
		if t.start == instantOf(t.token) {
			start = ""
		}
		if start == "" && t.why == "" && i == len(h)-1 {
			break
		}
		texts = append(texts, join(strconv.FormatUint(t.token, 36), start, t.end.String(), t.why, t.id))
	}
	return strings.Join(texts, ";")
}

func parseInstant(s string) instant {
	i, _ := strconv.ParseInt(s, 36, 64)
	return instant(i)
}

func (i instant) String() string {
	if i == 0 {
		return ""
	}
	return strconv.FormatInt(int64(i), 36)
}

// begin returns the history after an acquisition that replaces prev. The former
// term ends now if it was not closed.
func (h history) begin(prev backends.Record, id string, token uint64, now instant) history {
	if n := len(h); n > 0 && h[n-1].why == "" {
		last := &h[n-1]
		last.why = "-"
		if last.token == prev.Token && !prev.Vacant() {
			last.why, last.end = "e", now
		}
	}
	t := newTerm(id, token)
	t.began(now)
	return append(h, t)
}

// end returns the history after a release.
func (h history) end(id string, token uint64, why string, now instant) history {
	if len(h) == 0 || h[len(h)-1].token < token {
		h = append(h, newTerm(id, token))
	}
	if last := &h[len(h)-1]; last.token == token {
		last.why, last.end = why, now
	}
	return h
}

// into returns the extensions with the history in place of the one that they have,
// without its oldest terms if there is no room for them.
func (h history) into(x backends.Extensions) backends.Extensions {
	x = x.Without(historyName)
	for h = h.latest(); len(h) > 0; h = h[1:] {
		if text := h.String(); text == "" {
			return x
		} else if len(text) <= mostHistory {
			if with, err := x.With(historyName, text); err == nil {
				return with
			}
		}
	}
	return x
}
