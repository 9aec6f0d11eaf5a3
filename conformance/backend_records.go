package conformance

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// raw/harness: Raw does what its comments state. The cases with raw access rely
// on it.
func rawHarness(s *suite) {
	raw, all := s.h.Raw, s.handles(2)
	if got := raw.Get(s, s.name); got != nil {
		s.Fatalf("Raw.Get returns nil if the store keeps nothing for an election: it returned %d bytes: %v", len(got), got)
	}
	first := s.swap(all[0], s.name, backends.Record{}, acquisition("first", 1))
	kept := raw.Get(s, s.name)
	if kept == nil {
		s.Fatalf("Raw.Get returns what the store keeps: it returned nil after a Swap had written %v", first)
	}
	second := s.swap(all[0], s.name, first, acquisition("second", 2))
	if bytes.Equal(raw.Get(s, s.name), kept) {
		s.Fatalf("Raw.Get returns what the store keeps: it returned the same for %v and %v", first, second)
	}
	raw.Put(s, s.name, kept)
	if got := raw.Get(s, s.name); !bytes.Equal(got, kept) {
		s.Fatalf("Raw.Put replaces what the store keeps: after %v Raw.Get returned %v", kept, got)
	}
	for _, b := range all {
		if got := s.load(b, s.name); content(got) != content(first) {
			s.Fatalf("a record that Raw.Put has put back reads as before: Load returned %v instead of %v", got, first)
		}
	}
	raw.Delete(s, s.name)
	if got := raw.Get(s, s.name); got != nil {
		s.Fatalf("Raw.Delete removes what the store keeps: Raw.Get then returned %d bytes, and must return nil: %v", len(got), got)
	}
	s.shows(all, s.name, backends.Record{}, "a deleted record is the zero Record")
	raw.Put(s, s.name, kept)
	if got := s.load(all[0], s.name); content(got) != content(first) {
		s.Fatalf("a deleted record that Raw.Put has put back reads as before: Load returned %v instead of %v", got, first)
	}
}

// tok/strict: every handle reads what a Swap wrote, exactly and in every field.
// The token matters most: an elector takes the next higher one.
func exactRecords(s *suite) {
	all := s.handles(2)
	s.shows(all, s.name, backends.Record{}, "an election without a record is the zero Record and no error")
	var last backends.Record
	records := exact()
	for _, what := range slices.Sorted(maps.Keys(records)) {
		next := records[what]
		last = s.swap(all[0], s.name, last, next)
		s.shows(all, s.name, last, "Load returns what Swap wrote, in every field ("+what+")")
		s.shows(all, s.name, last, "a record that did not change keeps its version ("+what+")")
	}
}

// exact returns valid records at the bounds of each field.
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
		"no text":             "",
		"spaces around":       "  a \t\n ",
		"quotes and braces":   `'"` + "`" + `\'' "" {"a":1} $1 %s ; -- /* */ <b>&amp;`,
		"a backslash escape":  `\u0000 \n \x00 \\`,
		"unicode":             "Zürich 東京 😀 e\u0301 é \u2028 \ufeff \ufffd \U0010ffff",
		"control characters":  "\x01\x02\x1b[31m\x7f\r\n\u0085",
		"the greatest length": strings.Repeat("v", backends.MaxText),
		"many escapes":        strings.Repeat("\x01", backends.MaxText),
		"the longest unicode": strings.Repeat("😀", backends.MaxText/4),
		"a number":            "0123",
		"null":                "null",
	} {
		add("a value with "+what, func(r *backends.Record) { r.Value = text })
		add("a holder with "+what, func(r *backends.Record) { r.Holder = text })
	}
	add("both texts of the greatest length", func(r *backends.Record) {
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
