package conformance

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/elector-go/elector/backends"
)

// extended returns extensions that a record may have: of each class, of all
// classes, and at the bounds.
func (s *suite) extended() map[string]backends.Extensions {
	s.Helper()
	all := map[string]backends.Extensions{}
	add := func(what string, pairs ...string) {
		var x backends.Extensions
		for i := 0; i < len(pairs); i += 2 {
			var err error
			x, err = x.With(pairs[i], pairs[i+1])
			s.must(err, "extensions with %s", what)
		}
		all[what] = x
	}
	const most = backends.MaxExtensions - len("t_a")
	add("one that is critical", "c_stop", "1")
	add("one that is kept", "k_history", "5 host-1, 6 host-2")
	add("one of the term", "t_bid", "host-2")
	add("one of each class", "t_bid", "host-2", "k_history", "5 host-1", "c_stop", "1")
	add("several of a class", "k_b", "2", "k_a", "1", "k_a_b", "3", "k__", "4")
	add("no text", "k_a", "", "t_a", "")
	add("the longest name", "k_"+strings.Repeat("z", 30), "1")
	add("as many bytes as there may be", "t_a", strings.Repeat("v", most))
	add("as many, and much escaped", "t_a", strings.Repeat("\x01", most))
	add("as many, in unicode", "t_a", strings.Repeat("😀", most/4)+"v")
	add("unicode", "k_a", "Zürich 東京 😀 e\u0301 é \u2028 \u2029 \ufeff \ufffd \U0010ffff")
	add("control characters", "k_a", "\x01\x02\x1b[31m\x7f\r\n\u0085")
	add("escapes", "k_a", `'"`+"`"+`\'' "" {"a":1} $1 %s ; -- /* */ <b>&amp; \u0000 \n \x00 \\`)
	return all
}

// rec/kept: a process that does not hold the election changes an extension and
// nothing else, not even the attempt. That makes a new version, which every
// handle reads exactly, and a Swap from the version before must not overwrite
// it.
func extensionsKept(s *suite) {
	all, extended := s.handles(2), s.extended()
	held := s.swap(all[0], s.name, backends.Record{}, acquisition("holder", 1))
	for _, what := range slices.Sorted(maps.Keys(extended)) {
		next := held
		next.Extensions = extended[what]
		changed := s.swap(all[1], s.name, held, next)
		s.shows(all, s.name, changed, "extensions are read as they were written ("+what+")")
		const rule = "a Swap that changes an extension alone makes a new version, which must conflict with a Swap from the one before"
		s.conflicts(all[0], s.name, held, renewal(held), rule)
		s.conflicts(all[1], s.name, held, next, rule)
		s.shows(all, s.name, changed, "a Swap that conflicts changes nothing ("+what+")")
		held = s.swap(all[0], s.name, changed, renewal(changed))
		s.shows(all, s.name, held, "a renewal keeps the extensions that it was given ("+what+")")
	}
	longest := renewal(held)
	longest.Holder, longest.Value = strings.Repeat("\x01", backends.MaxText), strings.Repeat("\x02", backends.MaxText)
	longest.Extensions = extended["as many, and much escaped"]
	s.shows(all, s.name, s.swap(all[0], s.name, held, longest), "the longest record is read as it was written")
}

// rec/term: a Swap writes the extensions that it was given, and no others.
func extensionsDropped(s *suite) {
	all, extended := s.handles(2), s.extended()
	const rule = "a Swap writes the extensions that it was given, and no others"
	next := acquisition("holder", 1)
	next.Extensions = extended["one of each class"]
	held := s.swap(all[0], s.name, backends.Record{}, next)
	s.shows(all, s.name, held, rule)

	free := vacancy(held)
	free.Extensions = held.Extensions.Class('k')
	free = s.swap(all[0], s.name, held, free)
	s.shows(all, s.name, free, rule)

	next = acquisition("successor", 2)
	next.Extensions = free.Extensions.Class('k')
	held = s.swap(all[1], s.name, free, next)
	s.shows(all, s.name, held, rule)

	held = s.swap(all[0], s.name, held, acquisition("last", 3))
	s.shows(all, s.name, held, rule)
}

// rec/critical: a backend does not know any extension by name. It reads a
// critical one like the others, in a held record and in a vacant one, so that
// the elector can refuse to campaign. A renewal in a batch treats extensions as
// Swap does.
func extensionsCritical(s *suite) {
	all, extended := s.handles(2), s.extended()
	next := acquisition("holder", 1)
	next.Extensions = extended["one that is critical"]
	held := s.swap(all[0], s.name, backends.Record{}, next)
	s.shows(all, s.name, held, "a critical extension is read with the record")
	s.shows(all, s.name, s.swap(all[0], s.name, held, vacancy(held)), "a critical extension is read with the record, a vacant one too")

	if _, ok := all[0].(backends.BatchSwapper); !ok {
		return
	}
	f := s.fleet("-batch", len(extended))
	texts := slices.Sorted(maps.Values(extended))[:len(f.names)]
	extend := func(shift int) []backends.Change {
		renewals := f.renewals(first(len(f.names))...)
		for i := range renewals {
			renewals[i].Next.Extensions = texts[(i+shift)%len(texts)]
		}
		return renewals
	}
	f.largest(extend(0))
	f.largest(f.renewals(first(len(f.names))...)) // keeps them
	f.largest(extend(1))
	f.renewed(len(f.names) - 1)
	f.spoilt(0, "another process has changed an extension", func(r backends.Record) {
		next := r
		next.Extensions = extended["one of the term"]
		s.swap(f.all[1], f.names[0], r, next)
	})
}

// rec/bounds: extensions that are too long, malformed or in a wrong place make a
// record foreign.
func extensionBounds(s *suite) {
	mega, size := s.mega()
	s.foreign("rec/bounds", func(good []byte) map[string][]byte {
		before := func(field, text string) []byte {
			return bytes.Replace(good, []byte(`"`+field+`"`), []byte(text+`,"`+field+`"`), 1)
		}
		bad := map[string][]byte{
			"too long":                  again(good, `"k_a":"`+strings.Repeat("v", backends.MaxExtensions-len("k_a")+1)+`"`),
			"too long together":         again(good, `"k_a":"`+strings.Repeat("v", 1<<10)+`","k_b":"`+strings.Repeat("v", 1<<10)+`"`),
			size:                        again(good, `"k_a":"`+strings.Repeat("v", mega)+`"`),
			"too many":                  again(good, `"k_a":""`+strings.Repeat(`,"k_a":""`, mega/10)),
			"out of order":              again(good, `"k_b":"1","k_a":"1"`),
			"classes out of order":      again(good, `"t_a":"1","c_a":"1"`),
			"one twice":                 again(good, `"k_a":"1","k_a":"2"`),
			"one twice, the same":       again(good, `"k_a":"1","k_a":"1"`),
			"one twice, escaped":        again(good, `"k_a":"1","k_\u0061":"1"`),
			"one before all":            before("schema", `"k_a":"1"`),
			"one before the attempt":    before("attempt", `"k_a":"1"`),
			"a number":                  again(good, `"k_a":1`),
			"a number of a later class": again(good, `"n_a":1`),
			"invalid UTF-8":             again(good, "\"k_a\":\"\xff\xfe\""),
			"a NUL":                     again(good, `"k_a":"\u0000"`),
			"null":                      again(good, `"k_a":null`),
			"true":                      again(good, `"k_a":true`),
			"a list":                    again(good, `"k_a":["1"]`),
			"an object":                 again(good, `"k_a":{"b":"1"}`),
			"deeply nested":             again(good, `"k_a":`+strings.Repeat(`{"k_a":`, min(10000, mega/9))+`"1"`+strings.Repeat("}", min(10000, mega/9))),
			"one that is good, and one": again(good, `"k_a":"1","lock_delay":"5s"`),
		}
		for _, name := range []string{"", "k", "k_", "k_a1", "k_A", "K_a", "k-a", "k a", "k_a ", "kk_a", "x_a", "_a", "a", "k_é", `k_\u0000`, "Holder", "k_" + strings.Repeat("a", 31)} {
			bad[fmt.Sprintf("the name %.10q", name)] = again(good, `"`+name+`":"1"`)
		}
		return bad
	})
}
