package conformance

import (
	"bytes"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// raw/harness: Raw does what its comments say. The cases with raw access rest
// on it.
func rawHarness(s *suite) {
	raw, all := s.h.Raw, s.handles(2)
	if got := raw.Get(s, s.name); got != nil {
		s.Fatalf("Raw.Get returns nil where there is nothing: got %q", got)
	}
	first := s.swap(all[0], s.name, backends.Record{}, acquisition("first", 1))
	kept := raw.Get(s, s.name)
	if kept == nil {
		s.Fatalf("Raw.Get returns what the store keeps: got nil after %+v", first)
	}
	second := s.swap(all[0], s.name, first, acquisition("second", 2))
	if bytes.Equal(raw.Get(s, s.name), kept) {
		s.Fatalf("Raw.Get returns what the store keeps: it is the same for %+v and %+v", first, second)
	}
	raw.Put(s, s.name, kept)
	if got := raw.Get(s, s.name); !bytes.Equal(got, kept) {
		s.Fatalf("Raw.Put puts back what Raw.Get returned: put %q, got %q", kept, got)
	}
	for _, b := range all {
		if got := s.load(b, s.name); content(got) != content(first) {
			s.Fatalf("a record that was put back reads as it did: %+v, want %+v", got, first)
		}
	}
	raw.Delete(s, s.name)
	if got := raw.Get(s, s.name); got != nil {
		s.Fatalf("Raw.Delete removes what the store keeps: Get returns %q", got)
	}
	s.shows(all, s.name, backends.Record{}, "a deleted record is the zero Record")
	raw.Put(s, s.name, kept)
	if got := s.load(all[0], s.name); content(got) != content(first) {
		s.Fatalf("a deleted record that was put back reads as it did: %+v, want %+v", got, first)
	}
}

// tok/strict: what a Swap wrote is what everybody reads, exactly and in every
// field, above all the token: an elector goes one higher than what it reads.
func exactRecords(s *suite) {
	all := s.handles(2)
	s.shows(all, s.name, backends.Record{}, "a record that was never written is the zero Record and no error")
	var last backends.Record
	for what, next := range exact() {
		last = s.swap(all[0], s.name, last, next)
		s.shows(all, s.name, last, "what Swap wrote is what Load returns, in every field ("+what+")")
		s.shows(all, s.name, last, "a record that was not changed keeps its version ("+what+")")
	}
}

// exact are valid records at the bounds of each field.
func exact() map[string]backends.Record {
	records := map[string]backends.Record{}
	add := func(what string, change func(r *backends.Record)) {
		r := acquisition("holder", 1)
		change(&r)
		records[what] = r
	}
	for what, token := range map[string]uint64{
		"the lowest token": 1, "a token of 32 bits": 1<<32 - 1, "a token of 33 bits": 1<<32 + 1,
		"an odd token of 53 bits": 1<<52 + 1, "the highest token": backends.MaxToken,
	} {
		add(what, func(r *backends.Record) { r.Token = token })
	}
	for what, text := range map[string]string{
		"no text":                   "",
		"spaces around":             "  a \t\n ",
		"quotes and braces":         `'"` + "`" + `\'' "" {"a":1} $1 %s ; -- /* */ <b>&amp;`,
		"a backslash escape":        `\u0000 \n \x00 \\`,
		"unicode":                   "Zürich 東京 😀 e\u0301 é \u2028 \ufeff \ufffd \U0010ffff",
		"control characters":        "\x01\x02\x1b[31m\x7f\r\n\u0085",
		"as long as it may be":      strings.Repeat("v", backends.MaxText),
		"as long, and much escaped": strings.Repeat("\x01", backends.MaxText),
		"as long, in unicode":       strings.Repeat("😀", backends.MaxText/4),
		"a number":                  "0123",
		"null":                      "null",
	} {
		add("a value with "+what, func(r *backends.Record) { r.Value = text })
		add("a holder with "+what, func(r *backends.Record) { r.Holder = text })
	}
	add("both texts as long as they may be", func(r *backends.Record) {
		r.Holder, r.Value = strings.Repeat("<", backends.MaxText), strings.Repeat(">", backends.MaxText)
	})
	add("the shortest times", func(r *backends.Record) { r.TTL, r.RenewEvery = 2, 1 })
	add("the longest times", func(r *backends.Record) { r.TTL, r.RenewEvery = backends.MaxTTL, backends.MaxTTL-1 })
	add("times to the nanosecond", func(r *backends.Record) { r.TTL, r.RenewEvery = 15*time.Second+1, 1234567891 })
	add("the longest attempt", func(r *backends.Record) {
		r.Attempt.Nonce += strings.Repeat("Z", backends.MaxNonce-len(r.Attempt.Nonce))
		r.Attempt.Sequence = 1<<64 - 1
	})
	return records
}
