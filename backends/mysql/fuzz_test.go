package mysql

import (
	"database/sql/driver"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzRow: whatever a row of the table holds, it is the record that its columns say or
// foreign, and is read in bounded memory. The bits of nulls are columns that are NULL.
func FuzzRow(f *testing.F) {
	add := func(nulls uint8, schema int64, change func(r *backends.Record)) {
		r := check.Good()
		change(&r)
		f.Add(nulls, schema, r.Holder, int64(r.Token), int64(r.TTL), int64(r.RenewEvery), r.Attempt.String(), r.Value, string(r.Extensions))
	}
	same := func(*backends.Record) {}
	for nulls := range 9 {
		add(1<<nulls>>1, 1, same)
	}
	for _, schema := range []int64{0, 2, -1} {
		add(0, schema, same)
	}
	for _, change := range []func(r *backends.Record){
		func(r *backends.Record) { r.Holder, r.Value = "", "" },
		func(r *backends.Record) { r.Value = "\xff" },
		func(r *backends.Record) { r.Token = 0 },
		func(r *backends.Record) { r.Token = backends.MaxToken + 1 },
		func(r *backends.Record) { r.TTL = -1 << 63 },
		func(r *backends.Record) { r.RenewEvery = r.TTL },
		func(r *backends.Record) { r.Attempt.Nonce = "a.b" },
		func(r *backends.Record) { r.Attempt.Sequence = 0 },
	} {
		add(0, 1, change)
	}
	for _, ext := range check.Extensions() {
		add(0, 1, func(r *backends.Record) { r.Extensions = backends.Extensions(ext) })
	}
	server := &fake{variables: serving()}
	b := server.backend(f, Options{})
	f.Fuzz(func(t *testing.T, nulls uint8, schema int64, holder string, token, ttl, renewEvery int64, attempt, value, ext string) {
		server.row = []driver.Value{int64(0), int64(0), []byte(check.Election), schema, []byte(holder), token, ttl, renewEvery, []byte(attempt), []byte(value), []byte(ext)}
		for i := range 8 {
			if nulls&(1<<i) != 0 {
				server.row[3+i] = nil
			}
		}
		server.asked, server.with = nil, nil
		var r backends.Record
		var err error
		check.Bounded(t, 1<<14+len(holder)+len(attempt)+len(value)+len(ext), func() { r, err = b.Load(t.Context(), check.Election) })
		if !check.Loaded(t, check.Election, r, err) {
			return
		}
		if nulls != 0 || schema != 1 || r.Holder != holder || r.Value != value || string(r.Extensions) != ext || int64(r.Token) != token || int64(r.TTL) != ttl || int64(r.RenewEvery) != renewEvery || !strings.HasPrefix(attempt, r.Attempt.Nonce+".") {
			t.Fatalf("%q was taken as %+v", server.row, r)
		}
		was, err := backends.Decode(check.Election, []byte(r.Version)) // as Swap does
		if r.Version = ""; err != nil || was != r {
			t.Fatalf("the version of %+v is %+v, %v", r, was, err)
		}
	})
}

// FuzzTable: the name of a table is one or two plain identifiers or is refused, so that
// it is no more than a name in any statement.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"elector", "ops.Elections", "", ".", "a.", ".a", "a.b.c", "a;b", "a`b", "1a", "a b", "é", "a\n", "a\x00", strings.Repeat("a", 64), strings.Repeat("a", 65)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := parseTable(s)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", s, err)
			}
			return
		}
		want := "`" + strings.ReplaceAll(s, ".", "`.`") + "`"
		if len(name) < 1 || len(name) > 2 || name.quoted() != want || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") != "" {
			t.Fatalf("%q is %q, quoted %s", s, []string(name), name.quoted())
		}
	})
}

// FuzzURL: a URL is what the client library can use or is refused, and its password
// reaches the library only.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h/db", "h1,h2:3307/base?table=ops.elections&create=true&one_node=true&allow_async=true", "", "/", "/db", "[::1]/db", "h:99999/db", "h:x/db", "h/db?tabel=x", "h/db?table=a&table=b",
		"h/db?autocommit=0", "h/db?table=a%3Bb", "h/db?ca=a", "h/db?cert=a", "h/a%40b", "h#f")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"mysql", "mysqls"}, user, before, after, rest)
		if !ok {
			return
		}
		u, err := url.Parse(a.Text)
		if err != nil {
			return // backends.Open says nothing of it
		}
		configs, options, err := parse(t.Context(), u)
		a.Hides(t, err, options.Table)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", a.Text, err)
			}
			return
		}
		a.Hides(t, backends.Redact(u)) // the name of the store from now on
		for _, c := range configs {
			if user != "" {
				a.Means(t, c.User, c.Passwd)
			}
			if c.Addr == "" || c.Timeout <= 0 || c.Net != "tcp" {
				t.Fatalf("%q: %+v", a.Text, c)
			}
		}
	})
}
