// Package annex encodes what the record of an election holds in extensions: who should
// lead next (a Bid), a Request to resign, a Pause, and the History of terms.
//
// Everything here is for order and for people. Whether a candidate may lead never
// depends on it, only whether it should. Another version of this library, or a person,
// may have written any of it: a text that makes no sense is treated as none, and as a
// pause without an end.
package annex

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/elector-go/elector/backends"
)

// The bounds of what is written. A record with its history stays below a kilobyte if
// IDs and values have ordinary lengths: DynamoDB counts a write unit for each.
const (
	MaxSuccessor = 256 // bytes of the ID of a candidate that should lead next
	MaxID        = 64  // bytes of an ID that only people read
	MaxTerms     = 8
	MaxHistory   = 512 // bytes
)

// An Annex is what the extensions of a record say of who should lead, and who should not.
type Annex struct {
	Bid     Bid
	Request Request
	Pause   *Pause // nil if there is none
	of      question
}

// A question is all of a record that decides what its Annex is.
type question struct {
	extensions backends.Extensions
	token      uint64
	vacant     bool
}

// A Reader reads the extensions of an election's records. It decodes those of a state once,
// however often it is asked, and those of a renewal only if they have changed. The zero
// Reader is ready for use. Many goroutines may use it.
type Reader struct {
	latest  atomic.Pointer[Annex]
	Decoded atomic.Int64 // records that it had to decode
}

// Of returns what the extensions of a record say. Callers must not change it.
func (d *Reader) Of(r backends.Record) Annex {
	if !r.Exists() || r.Extensions == "" {
		return Annex{}
	}
	of := question{r.Extensions, r.Token, r.Vacant()}
	if a := d.latest.Load(); a != nil && a.of == of {
		return *a
	}
	bid := bidOf(r)
	a := &Annex{bid, requestOf(r, bid), pauseOf(r), of}
	d.latest.Store(a)
	d.Decoded.Add(1)
	return *a
}

// Acquired returns the extensions of an acquisition that replaces prev: those that are
// kept, with the new term in the history. now is the time of day when it is sent.
func Acquired(prev backends.Record, id string, token uint64, now time.Time) backends.Extensions {
	return HistoryOf(prev).begin(id, token, now).into(prev.Extensions.Class('k'))
}

// Renewed returns the extensions of a renewal of r: the same, with a request marked as
// one that the leader follows.
func (d *Reader) Renewed(r backends.Record) backends.Extensions {
	q := d.Of(r).Request
	if q.Token == 0 || q.Draining {
		return r.Extensions
	}
	q.Draining = true
	if x, err := r.Extensions.With(RequestName, q.String()); err == nil {
		return x
	}
	return r.Extensions // no room: the requester does not see it
}

// Released returns the extensions of the vacancy that replaces r: those that are kept,
// with the end of the term in the history, and who should lead next. successor is the
// ID of the candidate that the leader named, if it named one. With a pause no candidate
// should lead; one that finds no room, see Pauses, is left out.
func (d *Reader) Released(r backends.Record, why Reason, successor string, pause *Pause, now time.Time) backends.Extensions {
	x, said := r.Extensions.Class('k').Without(HistoryName), d.Of(r)
	next := said.Bid
	if why == Resigned && said.Request.Token != 0 {
		why = Requested
	}
	if successor != "" {
		next = Bid{Named, successor, r.Attempt.Nonce}
	}
	if pause != nil {
		if with, err := Pauses(r, *pause); err == nil {
			x, why, next = with, Paused, Bid{}
		}
	}
	if !next.None() {
		if with, err := next.Into(x); err == nil {
			x = with
		}
	}
	return HistoryOf(r).end(why, now).into(x)
}

// Pauses returns the extensions of a vacancy with the pause that replaces r, but for the
// history, or an error if r keeps so much of other versions that there is no room.
func Pauses(r backends.Record, p Pause) (backends.Extensions, error) {
	return p.Into(r.Extensions.Class('k').Without(HistoryName))
}

// CheckID returns an error unless id can name a candidate that should lead next.
func CheckID(id string) error {
	switch {
	case id == "":
		return errors.New("the ID of the candidate that should lead next is empty")
	case len(id) > MaxSuccessor:
		return fmt.Errorf("the ID %.40q… has %d bytes; a candidate that should lead next may have %d", id, len(id), MaxSuccessor)
	case !backends.ValidText(id):
		return fmt.Errorf("the ID %.80q is not UTF-8, or has a NUL byte", id)
	}
	return nil
}

// Legible returns an ID for people: at most MaxID bytes of it, with "?" for what a
// terminal does not show. Nothing may depend on it: another version of Go may show
// another rune.
func Legible(id string) string {
	id = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, id)
	n := min(len(id), MaxID)
	for n < len(id) && !utf8.RuneStart(id[n]) {
		n--
	}
	return id[:n]
}

// shown reports whether an ID may have been written by Legible of any version of Go.
func shown(id string) bool {
	return len(id) <= MaxID && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

// Join returns texts as one, which needs no escapes in JSON. Split takes it apart.
func Join(texts ...string) string {
	escaped := make([]string, len(texts))
	for i, text := range texts {
		escaped[i] = escape(text)
	}
	return strings.Join(escaped, " ")
}

// escape writes as %XX what JSON escapes, what separates texts, and "%".
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		s := string(r)
		if r > ' ' && !strings.ContainsRune("\"\\<>&;%\x7f\u2028\u2029", r) {
			b.WriteString(s)
			continue
		}
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Split returns the n texts that Join was given, and empty ones for anything else. It
// ignores further texts, of a newer version.
func Split(joined string, n int) []string {
	texts := make([]string, n)
	escaped := strings.Split(joined, " ")
	if len(escaped) < n {
		return texts
	}
	for i := range texts {
		text, err := url.PathUnescape(escaped[i])
		if err != nil {
			return make([]string, n)
		}
		texts[i] = text
	}
	return texts
}
