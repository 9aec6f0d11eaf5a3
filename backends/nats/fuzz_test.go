package nats

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzContent: whatever message is the latest of an election, it is a record, a marker or
// foreign, and is read in bounded memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content, []byte("NATS/1.0\r\nElector-Term: 8\r\n\r\n"), "life.renewal", uint64(9))
	}
	f.Add([]byte(nil), []byte("NATS/1.0\r\nKV-Operation: PURGE\r\n\r\n"), "life.term", uint64(9))
	f.Add([]byte("x"), []byte("NATS/1.0 100\r\n"), "*.term", uint64(0))
	f.Fuzz(func(t *testing.T, content, headers []byte, leaf string, seq uint64) {
		subject := "$KV.b.elector." + check.Election + "." + leaf
		body, _ := json.Marshal(map[string]any{"message": map[string]any{"subject": subject, "seq": seq, "hdrs": headers, "data": content}})
		fake := newFake()
		fake.instead("", says(string(body)))
		b := fake.backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<12+len(body), func() { r, err = b.Load(t.Context(), check.Election) })
		if seq == 0 && errors.Is(err, backends.ErrMisconfigured) {
			return
		}
		if err == nil && !r.Exists() {
			if !strings.Contains(strings.ToLower(string(headers)), "operation") && !strings.Contains(strings.ToLower(string(headers)), "marker") {
				t.Fatalf("%q with the headers %q means that there is no record", content, headers)
			}
			return
		}
		if check.Loaded(t, check.Election, r, err) {
			if s, ok := parseState(r.Version); !ok || s.seq != seq || s.version() != r.Version {
				t.Fatalf("the version of sequence %d is %q", seq, r.Version)
			}
		}
	})
}

// FuzzAnswer: whatever is answered, a read is a record, no record by one code, or an
// error; and a write is applied, a conflict or an error.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{"", "{}", "null", "[]", `{"message":null}`, `{"message":{"subject":"x","seq":1}}`, `{"message":{"seq":-1}}`, `{"message":{"data":"="}}`,
		`{"error":{"code":404,"err_code":10037,"description":"no message found"}}`, `{"error":{"code":400,"err_code":10071}}`, `{"error":{"code":403}}`, `{"error":[]}`,
		`{"stream":"KV_b","seq":8}`, `{"stream":"KV_b","seq":1e3}`, `{"stream":"KV_c","seq":8}`, strings.Repeat("[", 1000)} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		fake := newFake()
		fake.instead("", says(body))
		b := fake.backend()
		var r backends.Record
		var err error
		check.Bounded(t, 1<<12+len(body), func() { r, err = b.Load(t.Context(), check.Election) })
		if err == nil && !r.Exists() && !strings.Contains(body, "10037") && !strings.Contains(body, `hdrs`) && !strings.Contains(strings.ToLower(body), "hdrs") {
			t.Fatalf("%q means that there is no record", body)
		}
		if err == nil && r.Exists() && r.Validate() != nil {
			t.Fatalf("%q is the record %+v", body, r)
		}
		first := backends.Record{Version: "life.8.8"}
		made, err := b.Swap(t.Context(), check.Election, first, check.Good())
		if err == nil && (!made.Exists() || !strings.Contains(body, "KV_b") && !strings.Contains(body, `\u`)) || errors.Is(err, backends.ErrConflict) && !strings.Contains(body, "10") {
			t.Fatalf("%q: made %+v, %v", body, made, err)
		}
		if err != nil && len(err.Error()) > 2000 {
			t.Fatalf("an error of %d bytes for a person to read", len(err.Error()))
		}
	})
}

// FuzzNames: a name is one token of a subject; for an unusable name no request is made.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var subjects []string
		for _, name := range []string{a, b} {
			fake := newFake()
			var written string
			fake.instead("", func(_ context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
				written = m.Subject
				return nil, natsgo.ErrNoResponders
			})
			_, err := fake.backend().Load(t.Context(), name)
			_, e := fake.backend().Swap(t.Context(), name, backends.Record{Version: "life.8.8"}, check.Good())
			if !check.Usable(name) {
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(fake.sent()) > 0 {
					t.Fatalf("%q: Load %v and Swap %v, want ErrName and no request", name, err, e)
				}
				return
			}
			if got, _, _, ok := fake.backend().name(written); !ok || got != name || len(strings.Split(written, ".")) != 6 || strings.ContainsAny(written, " *>") {
				t.Fatalf("%q has the subject %q", name, written)
			}
			subjects = append(subjects, written)
		}
		if a != b {
			check.Distinct(t, subjects...)
		}
	})
}

// FuzzURL: a URL names servers and a bucket or is refused, and what looks like a password
// in it never shows.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h/b", "h:1,i:2/b", "[::1]:4/b", "h,,i/b", ":4222/b", "", "/b", "h/%20x", "h/a%40b", "h//", "h/a.b", "h/a/b", "h/b?token=x", "h/b?prefix=a.b", "h/b?prefix=a..b", "h/b?inbox=x", "h/b?server_name=i", "h/b?ca=/no/such/file", "h/b?creds=/no/such/file", "h/b?nkey=/no/such/file", "h/b?cert=a&key=b", "h/b?replicas=3&create=true", "h/b?tls_first=true", "h/b#f")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"nats", "natss"}, user, before, after, rest)
		if !ok {
			return
		}
		for _, text := range []string{a.Text, "nats://" + rest, "natss://" + rest} {
			u, err := url.Parse(text)
			if err != nil {
				continue // backends.Open shows nothing of it
			}
			b, o, own, err := parse(t.Context(), u)
			a.Hides(t, err)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			a.Hides(t, b.Describe().Store)
			if checkPlace(b.bucket, b.prefix) != nil || len(o.Servers) == 0 || own.Replicas < 0 || own.Replicas > 5 || o.Secure != (u.Scheme == "natss") {
				t.Fatalf("%q: bucket %q, prefix %q, servers %q, %d replicas, TLS %v", text, b.bucket, b.prefix, o.Servers, own.Replicas, o.Secure)
			}
			for _, server := range o.Servers {
				_, at, _ := strings.Cut(server, "://")
				if name, port, err := net.SplitHostPort(at); err != nil || name == "" || port == "" {
					t.Fatalf("%q: server %q: %v", text, server, err)
				}
			}
		}
	})
}
