package backends_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzDecodeRecord: whatever stands in the place of a record is a record within
// the bounds or ErrForeignRecord, and read in bounded memory.
func FuzzDecodeRecord(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(check.Election, content)
	}
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		var r backends.Record
		var err error
		check.Bounded(t, len(content), func() { r, err = backends.Decode(name, content) })
		if check.Decoded(t, name, r, err) && len(content) > 64<<10 {
			t.Fatalf("a record of %d bytes was taken", len(content))
		}
		if err == nil {
			readAlike(t, name, content, r)
			if _, err := backends.Decode(name+"x", content); !errors.Is(err, backends.ErrForeignRecord) {
				t.Fatalf("the record of %q is also another election's: %v", name, err)
			}
		}
	})
}

// TestDecodeLong: what no fuzzer should have to grow.
func TestDecodeLong(t *testing.T) {
	good := backends.Encode(check.Election, check.Good())
	for _, size := range []int{64 << 10, 64<<10 + 1} {
		long := append(bytes.Repeat([]byte(" "), size-len(good)), good...)
		r, err := backends.Decode(check.Election, long)
		if check.Decoded(t, check.Election, r, err) != (size <= 64<<10) {
			t.Errorf("%d bytes are decoded with error %v", size, err)
		}
	}
}

// readAlike checks that other readers of JSON see the same record: eight fields
// and the extensions, each once, and the values that Decode saw.
func readAlike(t *testing.T, name string, content []byte, r backends.Record) {
	t.Helper()
	extensions := named(t, r.Extensions)
	words := 0
	for d := json.NewDecoder(bytes.NewReader(content)); ; words++ {
		if _, err := d.Token(); err != nil {
			break
		}
	}
	var fields map[string]any
	if err := json.Unmarshal(content, &fields); err != nil || len(fields) != 8+len(extensions) || words != 2+2*len(fields) {
		t.Fatalf("%q was taken, with %d fields in %d words: %v", content, len(fields), words, err)
	}
	for key, want := range map[string]any{"schema": 1.0, "election": name, "holder": r.Holder, "token": float64(r.Token), "value": r.Value} {
		if fields[key] != want {
			t.Fatalf("%s of %q is %v, and was read as %v", key, content, fields[key], want)
		}
	}
	for key, want := range extensions {
		if got, ok := r.Extensions.Get(key); fields[key] != want || got != want || !ok {
			t.Fatalf("%s of %q is %v, and was read as %q and %q", key, content, fields[key], want, got)
		}
	}
}

// named returns extensions by their names.
func named(t *testing.T, x backends.Extensions) (fields map[string]string) {
	t.Helper()
	if x != "" {
		if err := json.Unmarshal([]byte(x), &fields); err != nil {
			t.Fatal(err)
		}
	}
	return fields
}

// A guard in the store compares the stem, which is the same as long as one holds
// the election, and no longer. So neither the order of the fields nor how they are
// written may ever change.
func TestRecordPrefix(t *testing.T) {
	t.Run("frozen", func(t *testing.T) {
		r := check.Good()
		r.Extensions = `{"c_stop":"1","k_history":"2026","t_bid":"host-2"}`
		const stem = `{"schema":1,"election":"invoice-sender","holder":"host-1","token":5,"ttl":"15s","renew_every":"4.5s","attempt":"NONCE.`
		const rest = `3","value":"10.0.0.1:80","c_stop":"1","k_history":"2026","t_bid":"host-2"}`
		if got := string(backends.Encode(check.Election, r)); got != stem+rest || backends.RecordPrefix(check.Election, r) != stem {
			t.Errorf("a record is written as\n%s\nwith the stem\n%s\nwant\n%s\n%s", got, backends.RecordPrefix(check.Election, r), stem+rest, stem)
		}
	})
	const records = 5000
	t.Run("in all states of an acquisition", func(t *testing.T) {
		random := rand.New(rand.NewPCG(13, 1))
		for range records {
			name, r := randomRecord(random)
			stem := backends.RecordPrefix(name, r)
			_, next := randomRecord(random)
			r.Attempt.Sequence, r.Value, r.Extensions = next.Attempt.Sequence, next.Value, next.Extensions
			if got := string(backends.Encode(name, r)); !strings.HasPrefix(got, stem) || got == stem {
				t.Fatalf("%s does not begin with %s", got, stem)
			}
		}
	})
	t.Run("in no other state", func(t *testing.T) {
		random := rand.New(rand.NewPCG(13, 2))
		for range records {
			name, r := randomRecord(random)
			stem := backends.RecordPrefix(name, r)
			vacant, longer, shorter, other := r, r, r, r
			vacant.Holder = ""
			longer.Attempt.Nonce += randomText(random)
			shorter.Attempt.Nonce = "N" // which all begin with
			otherName, next := randomRecord(random)
			other.Attempt = next.Attempt
			for what, got := range map[string][]byte{
				"a vacancy":                    backends.Encode(name, vacant),
				"another acquisition":          backends.Encode(name, other),
				"another, of a longer nonce":   backends.Encode(name, longer),
				"another, of a shorter nonce":  backends.Encode(name, shorter),
				"another election":             backends.Encode(otherName, r),
				"an election of a longer name": backends.Encode(name+"-", r),
				"another leader's in all":      backends.Encode(name, next),
				"another election's in all":    backends.Encode(otherName, next),
			} {
				if strings.HasPrefix(string(got), stem) {
					t.Fatalf("%s, %s, begins with %s", what, got, stem)
				}
			}
		}
	})
}

// randomRecord returns a record whose texts have what JSON escapes and what looks
// like a part of a record. No two have the same name or nonce.
func randomRecord(random *rand.Rand) (name string, r backends.Record) {
	r = backends.Record{
		Holder: "h" + randomText(random), Token: 1 + random.Uint64N(backends.MaxToken),
		TTL: time.Second + time.Duration(random.Int64N(int64(time.Hour))), RenewEvery: 1 + time.Duration(random.Int64N(int64(time.Second))),
		Attempt: backends.Attempt{Nonce: fmt.Sprintf("N%x%s", random.Uint64(), randomText(random)), Sequence: 1 + random.Uint64()>>random.UintN(64)},
		Value:   randomText(random),
	}
	if random.IntN(2) == 0 {
		r.Extensions, _ = r.Extensions.With("c_stop", randomText(random))
		r.Extensions, _ = r.Extensions.With("k_a", randomText(random))
	}
	return fmt.Sprintf("e%x", random.Uint64()), r
}

func randomText(random *rand.Rand) string {
	parts := []string{"a", "0", `"`, `\`, `","value":"`, "<", "\x01", "\u2028", "\U0010ffff", "é", "}"}
	text := parts[random.IntN(len(parts))]
	for random.IntN(3) > 0 {
		text += parts[random.IntN(len(parts))]
	}
	return text
}

// TestLongestRecord: the longest record that is valid is decoded too.
func TestLongestRecord(t *testing.T) {
	name, long := strings.Repeat("n", backends.MaxName), strings.Repeat("\x01", backends.MaxText)
	r := backends.Record{Holder: long, Value: long, Token: backends.MaxToken, TTL: backends.MaxTTL - 1, RenewEvery: backends.MaxTTL - 2,
		Attempt: backends.Attempt{Nonce: strings.Repeat("\x01", backends.MaxNonce), Sequence: 1<<64 - 1}}
	var err error
	if r.Extensions, err = r.Extensions.With("k_a", strings.Repeat("\x01", backends.MaxExtensions-len("k_a"))); err != nil {
		t.Fatal(err)
	}
	content := backends.Encode(name, r)
	if got, err := backends.Decode(name, content); err != nil || got != r {
		t.Errorf("a valid record of %d bytes is not decoded: %v", len(content), err)
	}
}

// FuzzEncodeRecord: every valid record is decoded as it was encoded; what is
// not valid cannot be made so by writing it.
func FuzzEncodeRecord(f *testing.F) {
	add := func(r backends.Record) {
		f.Add(check.Election, r.Holder, r.Token, int64(r.TTL), int64(r.RenewEvery), r.Attempt.Nonce, r.Attempt.Sequence, r.Value, string(r.Extensions))
	}
	for _, ext := range check.Extensions() {
		r := check.Good()
		r.Extensions = backends.Extensions(ext)
		add(r)
	}
	for _, change := range []func(r *backends.Record){
		func(r *backends.Record) { r.Holder, r.Value = "", "" },
		func(r *backends.Record) {
			r.Value = `'"\u0000 \x00 <b>&amp; ` + "\u2028 \ufeff \ufffd \U0010ffff \x01\x7f"
		},
		func(r *backends.Record) { r.Value = "a\x00b" },
		func(r *backends.Record) { r.Value = "\xff" },
		func(r *backends.Record) { r.Holder = strings.Repeat("<", backends.MaxText+1) },
		func(r *backends.Record) { r.Token, r.Attempt.Sequence = backends.MaxToken, 1<<64-1 },
		func(r *backends.Record) { r.Token = backends.MaxToken + 1 },
		func(r *backends.Record) { r.TTL, r.RenewEvery = backends.MaxTTL, backends.MaxTTL-1 },
		func(r *backends.Record) { r.TTL = backends.MaxTTL + 1 },
		func(r *backends.Record) { r.TTL, r.RenewEvery = -1<<63, -1 },
		func(r *backends.Record) { r.Attempt.Nonce = "a.b" },
	} {
		r := check.Good()
		change(&r)
		add(r)
	}
	f.Fuzz(func(t *testing.T, name, holder string, token uint64, ttl, renewEvery int64, nonce string, sequence uint64, value, ext string) {
		if backends.CheckName(name) != nil {
			return
		}
		r := backends.Record{Holder: holder, Token: token, TTL: time.Duration(ttl), RenewEvery: time.Duration(renewEvery),
			Attempt: backends.Attempt{Nonce: nonce, Sequence: sequence}, Value: value, Extensions: backends.Extensions(ext)}
		valid := r.Validate() == nil
		again, err := backends.Decode(name, backends.Encode(name, r))
		// Invalid UTF-8 becomes U+FFFD in JSON, so that such a record changes.
		if decoded := check.Decoded(t, name, again, err); valid && (!decoded || again != r) {
			t.Fatalf("the valid record %+v is encoded and decoded as %+v, %v", r, again, err)
		} else if !valid && decoded && again == r {
			t.Fatalf("%+v is not valid and was decoded", r)
		}
	})
}

// FuzzExtensions: a text is that of extensions within the bounds or foreign; what
// is set and what is kept of them is so too.
func FuzzExtensions(f *testing.F) {
	for _, ext := range check.Extensions() {
		f.Add(ext, "k_a", "1")
		f.Add(ext, "c_stop", "")
	}
	f.Fuzz(func(t *testing.T, s, name, value string) {
		taken := func(x backends.Extensions, err error) bool {
			r := check.Good()
			r.Extensions = x
			return check.Decoded(t, check.Election, r, err)
		}
		x, err := backends.ParseExtensions(s)
		if !taken(x, err) {
			return
		}
		with, err := x.With(name, value)
		if taken(with, err) {
			if got, ok := with.Get(name); got != value || !ok {
				t.Fatalf("%s with %q=%q is %s", x, name, value, with)
			}
			if critical := strings.HasPrefix(name, "c_"); critical && with.Critical() == "" || with.Critical(name) != x.Critical(name) {
				t.Fatalf("of %s, %q is critical, and but for %q %q", with, with.Critical(), name, with.Critical(name))
			}
		}
		for _, class := range []byte("ckt") {
			some := x.Class(class)
			taken(some, nil)
			for n, v := range named(t, x) {
				if got, ok := some.Get(n); ok != (n[0] == class) || ok && got != v {
					t.Fatalf("of %s, the class %q is %s", x, class, some)
				}
			}
		}
	})
}

// FuzzAttempt: an attempt is the same again after a way through text. One text
// may have several forms of one number, "01", but never two readings.
func FuzzAttempt(f *testing.F) {
	for _, s := range []string{"NONCE.3", "", "x", ".1", "x.", "x.0", "x.-1", "x.+1", "x.01", "x.1.1", "x.18446744073709551615", "x.18446744073709551616", "\x00.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := backends.ParseAttempt(s)
		if err != nil {
			if a != (backends.Attempt{}) || len(err.Error()) > 1000 {
				t.Fatalf("ParseAttempt(%q) is %v, %v", s, a, err)
			}
			return
		}
		if again, err := backends.ParseAttempt(a.String()); err != nil || again != a || a.Nonce == "" || !strings.HasPrefix(s, a.Nonce+".") {
			t.Fatalf("ParseAttempt(%q) is %q, and that is %q, %v", s, a, again, err)
		}
	})
}

// FuzzCheckName: the names that pass are those of the documentation.
func FuzzCheckName(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := backends.CheckName(name)
		if (err == nil) != check.Usable(name) || err != nil && (!errors.Is(err, backends.ErrName) || len(err.Error()) > 1000) {
			t.Fatalf("CheckName(%q) is %v", name, err)
		}
	})
}

const fuzzScheme = "fuzz-open"

var opened *url.URL // by its Opener last

func init() {
	backends.Register(fuzzScheme, func(_ context.Context, u *url.URL) (backends.Backend, error) {
		opened = u
		return nil, backends.NewParameters(u).Done()
	})
}

// FuzzOpen: whatever a URL is, Open says nothing of its password, nor does
// Redact; and an Opener gets what was written.
func FuzzOpen(f *testing.F) {
	check.URLs(f, "db:5432/app?sslmode=disable", "", "/", "a,b:1/c", "[::1]:2/", "db?password=x", "db/a%40b", "db/%zz", "h#fragment", "h?a=1&a=2")
	schemes := []string{fuzzScheme, "oracle", "etcd", "FUZZ-open"}
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, schemes, user, before, after, rest)
		if !ok {
			return
		}
		opened = nil
		_, err := backends.Open(t.Context(), a.Text)
		a.Hides(t, err)
		if err != nil && !errors.Is(err, backends.ErrURL) && !errors.Is(err, backends.ErrUnknownScheme) {
			t.Fatalf("%q: %v is neither ErrURL nor ErrUnknownScheme", a.Text, err)
		}
		if u, err := url.Parse(a.Text); err == nil {
			a.Hides(t, backends.Redact(u))
		}
		if opened != nil && form&2 != 0 && opened.User != nil {
			password, _ := opened.User.Password()
			a.Means(t, opened.User.Username(), password)
		}
	})
}

// FuzzParameters: a query is taken as a whole or refused, and a value in it
// never shows.
func FuzzParameters(f *testing.F) {
	for _, query := range []string{"", "table=a%20b&create=0&patience=1.5s", "tabel=x", "table=a&table=b", "create=yes", "patience=5", "patience=-5s", "patience=9223372036854775808ns",
		"table=%zz", "table=a;create=no", "table", "=", "&", "&&=&", "create=&patience=", "table=+", "%74able=x", "password=x&y"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		p := backends.NewParameters(&url.URL{Scheme: "x", RawQuery: query})
		table, create, patience := p.String("table", "elector"), p.Bool("create", true), p.Duration("patience", time.Second)
		if err := p.Done(); err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", query, err)
			}
			return
		}
		values, err := url.ParseQuery(query)
		for key, v := range values {
			if len(v) != 1 || key != "table" && key != "create" && key != "patience" {
				t.Fatalf("%q was taken with %q", query, v)
			}
		}
		if err != nil || values.Has("table") != (table != "elector" || values.Get("table") == table) || !values.Has("create") && !create || patience < 0 {
			t.Fatalf("%q was taken as %q, %v, %v", query, table, create, patience)
		}
	})
}

// TestMisread: passwords with special characters that are not encoded are read
// as a path, a query or a port, and showed there before the fuzzers found it.
func TestMisread(t *testing.T) {
	for _, raw := range []string{"x:app:s3cret@h", "x://app:1/s3cret@h", "x://app:1?s3cret@h", "x://app:1#s3cret@h", "x://app:1@h/s3cret@h", "x://app:1@h?s3cret@h", "x://app:1@h?a=s3cret@h", "x://app:?s3cret#@h",
		"x://h?password=1&s3cret", "x://h?password=1&s3cret=2"} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		p := backends.NewParameters(u)
		p.String("password", "")
		if err := p.Done(); strings.Contains(backends.Redact(u), "s3cret") || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: Redact says %s, and Done %v", raw, backends.Redact(u), err)
		}
		if err := p.Done(); strings.Contains(u.RawQuery, "@") && !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: its query is taken: %v", raw, err)
		}
	}
}
