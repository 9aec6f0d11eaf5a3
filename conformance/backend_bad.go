package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// bad/garbage: content that is not a record is ErrForeignRecord. It is never
// overwritten, and reading it takes bounded memory.
func garbage(s *suite) {
	mega, size := s.mega()
	s.foreign("bad/garbage", func(good []byte) map[string][]byte {
		nested := []byte(strings.Repeat(`{"holder":`, mega/10))
		bad := map[string][]byte{
			"nothing":                 {},
			"text":                    []byte("leader=host-1\n"),
			"null":                    []byte("null"),
			"a list":                  []byte(`[` + string(good) + `]`),
			"a string":                []byte(`"leader"`),
			"an object with nothing":  []byte("{}"),
			"half a record":           good[:len(good)/2],
			"two records":             append(slices.Clone(good), good...),
			"something after it":      append(slices.Clone(good), 'x'),
			"a NUL after it":          append(slices.Clone(good), 0),
			"something before it":     append([]byte("x"), good...),
			"NULs":                    make([]byte, 512),
			"invalid UTF-8":           edit(good, "value", "\"\xff\xfe\""),
			"a NUL in its text":       edit(good, "value", `"a\u0000b"`),
			"another election's":      backends.Encode(placeholder+"x", acquisition("other", 3)),
			"no election's":           edit(good, "election", `""`),
			size + " of noise":        bytes.Repeat([]byte("\x93\x00\xfe\x7f"), mega/4),
			size + " of value":        edit(good, "value", `"`+strings.Repeat("v", mega)+`"`),
			size + " of list":         edit(good, "value", `[`+strings.Repeat("0,", mega/2)+`0]`),
			"deeply nested lists":     bytes.Repeat([]byte("["), mega),
			"deeply nested objects":   nested,
			"a deeply nested value":   edit(good, "value", strings.Repeat("[", 30000)+strings.Repeat("]", 30000)),
			"a field twice":           again(good, `"token":9`),
			"a field twice, the same": again(good, `"schema":1`),
			"a field twice, escaped":  again(good, `"tok\u0065n":9`),
			"a further field":         again(good, `"comment":"mine"`),
			"fields in capitals":      bytes.ToUpper(good),
			"a field in capitals":     bytes.Replace(good, []byte(`"holder"`), []byte(`"Holder"`), 1),
			"a longer holder":         edit(good, "holder", `"`+strings.Repeat("h", backends.MaxText+1)+`"`),
			"a longer value":          edit(good, "value", `"`+strings.Repeat("v", backends.MaxText+1)+`"`),
		}
		if mega > 64<<10 { // a shorter record may have spaces around it
			bad[size+" of spaces first"] = append(bytes.Repeat([]byte(" "), mega), good...)
			bad[size+" of spaces after"] = append(slices.Clone(good), bytes.Repeat([]byte(" "), mega)...)
		}
		for field, texts := range map[string][]string{
			"election": {"null", "1"}, "holder": {"null", "1", "true", "{}", `["a"]`}, "value": {"null", "1", "false", "{}"},
			"token":   {"null", `"5"`, "true", "5.0", "5e0", "0", "-1", "9007199254740992", "1e400", "18446744073709551616", "[5]"},
			"attempt": {"null", "1", `""`, `"x"`, `".1"`, `"x."`, `"x.0"`, `"x.-1"`, `"x.1.1"`, `"x.18446744073709551616"`, `"` + strings.Repeat("x", backends.MaxNonce+1) + `.1"`},
		} {
			bad["no "+field] = edit(good, field, "")
			for _, text := range texts {
				bad[fmt.Sprintf("%s %.20s", field, text)] = edit(good, field, text)
			}
		}
		return bad
	})
}

// mega returns the size of large contents, to which a case may add a record, and
// the same as text.
func (s *suite) mega() (bytes int, text string) {
	if most := s.h.MaxContent; most != 0 && most < 1<<20+2<<10 {
		return most - 2<<10, fmt.Sprintf("%d bytes", most-2<<10)
	}
	return 1 << 20, "1 MiB"
}

// bad/ttl: an invalid TTL must neither depose a leader immediately nor keep a
// dead one for years. Such a record is foreign. The same is true of the renewal
// interval.
func badTTL(s *suite) {
	s.foreign("bad/ttl", func(good []byte) map[string][]byte {
		bad := map[string][]byte{"a renewal interval of the TTL": edit(good, "renew_every", `"15s"`)}
		for _, field := range []string{"ttl", "renew_every"} {
			bad["no "+field] = edit(good, field, "")
			for _, text := range []string{`"0s"`, `"0"`, `"-1ns"`, `"-15s"`, `"24h0m0.000000001s"`, `"1000000h"`,
				`"9223372036854775808ns"`, `"99999999999999999999h"`, `""`, `"soon"`, `"15"`, `"15 s"`, `"NaN"`, "15", "15000000000", "0", "-1", "null", "true", "{}"} {
				bad[field+" "+text] = edit(good, field, text)
			}
		}
		return bad
	})
}

// bad/newer: a newer version of the library wrote a record of a later schema.
// This version refuses it and does not change it.
func newerSchema(s *suite) {
	s.foreign("bad/newer", func(good []byte) map[string][]byte {
		later := edit(good, "schema", "2")
		return map[string][]byte{
			"schema 2":                     later,
			"schema 2, a further field":    again(later, `"lock_delay":"5s"`),
			"schema 2, a nested field":     again(later, `"successor":{"holder":"a","after":["b"]}`),
			"schema 2, fields it dropped":  edit(edit(later, "ttl", ""), "renew_every", ""),
			"schema 2, a field of another": edit(later, "token", `"00000000000000000005"`),
			"schema 2, an extension":       again(later, `"k_history":"5"`),
			"schema 1, a further field":    again(good, `"lock_delay":"5s"`),
			"schema 0":                     edit(good, "schema", "0"),
			"schema -1":                    edit(good, "schema", "-1"),
			"schema 1.5":                   edit(good, "schema", "1.5"),
			"schema 1e0":                   edit(good, "schema", "1e0"),
			"schema 2^64+1":                edit(good, "schema", "18446744073709551617"),
			"schema in quotes":             edit(good, "schema", `"1"`),
			"schema null":                  edit(good, "schema", "null"),
			"no schema":                    edit(good, "schema", ""),
		}
	})
}

// edit sets one field of an encoded record to a JSON text, or removes it if the
// text is empty.
func edit(good []byte, field, text string) []byte {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(good, &fields); err != nil {
		panic(err)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[key])
		if key == field {
			value = text
		}
		if value != "" {
			parts = append(parts, fmt.Sprintf("%q:%s", key, value))
		}
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

// again adds a field to an encoded record.
func again(good []byte, field string) []byte {
	return append(slices.Clone(good[:len(good)-1]), ","+field+"}"...)
}

// In a bad record placeholder stands for the election's name, and
// noncePlaceholder for the nonce of the record that it replaces: a person who
// edits a record does not change its attempt.
const placeholder, noncePlaceholder = "name-of-the-election", "nonce-of-the-attempt"

// foreign damages a record in many ways, one election for each, and checks that
// the backend neither returns it nor changes it. If the harness has Raw.Spoiled,
// these replace the suite's own ways.
func (s *suite) foreign(of string, ways func(good []byte) map[string][]byte) {
	all := s.handles(2)
	own := s.h.Raw.Spoiled
	if own == nil {
		own = map[string]map[string]func(testing.TB, string){of: {}}
		good := acquisition("holder", 5)
		good.Attempt.Nonce = noncePlaceholder
		for label, bad := range ways(backends.Encode(placeholder, good)) {
			own[of][label] = func(t testing.TB, name string) {
				old, err := backends.Decode(name, s.h.Raw.Get(t, name))
				if err != nil {
					t.Fatalf("Raw.Get must return the JSON of backends.Encode, or the harness needs Raw.Spoiled: %v", err)
				}
				fill := strings.NewReplacer(placeholder, name, noncePlaceholder, old.Attempt.Nonce)
				s.h.Raw.Put(t, name, []byte(fill.Replace(string(bad))))
			}
		}
	}
	if len(own[of]) == 0 {
		s.Errorf("Raw.Spoiled has no records for case %s", of)
	}
	for _, label := range slices.Sorted(maps.Keys(own[of])) {
		s.Run(label, func(t *testing.T) {
			s.part(t, uniqueName(of)).untouched(all, own[of][label])
		})
	}
}

// untouched puts bad content in the place of a record.
func (s *suite) untouched(all []backends.Backend, spoil func(t testing.TB, name string)) {
	old := s.swap(all[0], s.name, backends.Record{}, acquisition("holder", 4))
	spoil(s, s.name)
	before := s.h.Raw.Get(s, s.name)
	if before == nil {
		s.Fatal("the harness must damage the record: it has removed it")
	}
	next := acquisition("challenger", 6)
	for _, b := range all {
		r, took, err := s.measuredLoad(b)
		if !errors.Is(err, backends.ErrForeignRecord) {
			s.Fatalf("content that is not a valid record must be ErrForeignRecord, never a vacancy or a leader (Decode and Record.Validate check it): Load returned %v and error %v", r, err)
		}
		if most := uint64(8*len(before) + 4<<20); took > most {
			s.Errorf("a foreign record must be read in bounded memory: Load of %d bytes allocated %d, more than %d", len(before), took, most)
		}
		for _, prev := range []backends.Record{{}, old} {
			r, err := s.trySwap(b, s.name, prev, next)
			if !errors.Is(err, backends.ErrConflict) && !errors.Is(err, backends.ErrForeignRecord) {
				s.Errorf("a foreign record must never be overwritten: Swap from version %q must be ErrConflict or ErrForeignRecord, and it returned %v and error %v", prev.Version, r, err)
			}
		}
		if w, ok := backends.AsWatcher(b); ok {
			s.watchRefuses(w, s.name, backends.ErrForeignRecord)
		}
	}
	if after := s.h.Raw.Get(s, s.name); !bytes.Equal(before, after) {
		s.Errorf("a foreign record must keep every byte: %v became %v", before, after)
	}
}

// measuredLoad also returns how many bytes a Load allocates: the least of three,
// because the runtime counts those of all goroutines.
func (s *suite) measuredLoad(b backends.Backend) (r backends.Record, took uint64, err error) {
	took = 1<<64 - 1
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err = s.tryLoad(b, s.name)
		runtime.ReadMemStats(&after)
		took = min(took, after.TotalAlloc-before.TotalAlloc)
	}
	return r, took, err
}
