package elector_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/internal/fuzz/check" // for its init
)

// FuzzToken: a text is one token or none, to every reader; and a token is the
// same again after a way through text, JSON, SQL and HTTP.
func FuzzToken(f *testing.F) {
	for _, s := range []string{"1", "1795184054880793", "9007199254740991", "9007199254740992", "", "0", "-1", "+1", "01", " 1", "1 ", "1\n", "1e3", "1_0", "0x1", "٣", "18446744073709551615", "18446744073709551616", "1\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := elector.ParseToken(s)
		for how, read := range map[string]func(*elector.Token) error{
			"UnmarshalText": func(k *elector.Token) error { return k.UnmarshalText([]byte(s)) },
			"Scan string":   func(k *elector.Token) error { return k.Scan(s) },
			"Scan bytes":    func(k *elector.Token) error { return k.Scan([]byte(s)) },
		} {
			got := elector.Token(77)
			e := read(&got)
			if (e == nil) != (err == nil) || e == nil && got != token {
				t.Fatalf("%s of %q is %d, %v; ParseToken says %d, %v", how, s, got, e, token, err)
			}
			if e != nil && got != 77 {
				t.Fatalf("%s of %q fails and leaves %d", how, s, got)
			}
		}
		if err != nil {
			if !errors.Is(err, elector.ErrInvalid) || token != 0 || len(err.Error()) > 1000 {
				t.Fatalf("ParseToken(%q) is %d and error %v", s, token, err)
			}
			return
		}
		if token < 1 || token >= 1<<53 || token.String() != s {
			t.Fatalf("ParseToken(%q) is %d, %q", s, uint64(token), token)
		}

		text, err := json.Marshal(token)
		var back elector.Token
		if err != nil || json.Unmarshal(text, &back) != nil || back != token {
			t.Fatalf("token %d comes back from JSON as %d: %s, %v", token, back, text, err)
		}
		value, err := token.Value()
		if n, ok := value.(int64); err != nil || !ok || n <= 0 || uint64(n) != uint64(token) {
			t.Fatalf("token %d is %v in SQL, %v", token, value, err)
		}
		if back = 0; back.Scan(value) != nil || back != token {
			t.Fatalf("token %d comes back from SQL as %d", token, back)
		}
		if back, err = elector.ParseToken(header(t, token.String())); err != nil || back != token {
			t.Fatalf("token %d comes back from an HTTP request as %d, %v", token, back, err)
		}
	})
}

// header sends a request with the token's header through the wire format.
func header(t *testing.T, value string) string {
	t.Helper()
	r := &http.Request{Method: "PUT", URL: &url.URL{Scheme: "http", Host: "h", Path: "/"}, Header: http.Header{}}
	r.Header.Set(elector.TokenHeader, value)
	var wire bytes.Buffer
	if err := r.Write(&wire); err != nil {
		t.Fatal(err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	return got.Header.Get(strings.ToLower(elector.TokenHeader))
}

// FuzzTokenNumber: a number is read from SQL if and only if it is a token, and
// numbers are ordered as tokens are.
func FuzzTokenNumber(f *testing.F) {
	for _, n := range []int64{1, 0, -1, 1<<53 - 1, 1 << 53, 1<<63 - 1, -1 << 63, 1795184054880793} {
		f.Add(n, int64(1))
	}
	f.Fuzz(func(t *testing.T, n, m int64) {
		var a, b elector.Token
		if err := a.Scan(n); (err == nil) != (n >= 1 && n < 1<<53) || err != nil && !errors.Is(err, elector.ErrInvalid) {
			t.Fatalf("Scan(%d) is %d, %v", n, a, err)
		} else if err == nil && int64(a) != n {
			t.Fatalf("Scan(%d) is %d", n, a)
		}
		if a == 0 || b.Scan(m) != nil {
			return
		}
		if c := a.Compare(b); (c < 0) != (n < m) || (c > 0) != (n > m) || c != -b.Compare(a) {
			t.Fatalf("Compare(%d, %d) is %d", n, m, c)
		}
	})
}

// FuzzFence plays a sequence of writes, two bytes each, on a Fence and on a map
// of the highest tokens. The low two bits of the first byte are the resource.
func FuzzFence(f *testing.F) {
	f.Add([]byte{0, 5, 0, 5, 0, 4, 1, 4, 0, 6, 0, 5, 0, 0})
	f.Add([]byte{0x80, 9, 0, 8, 0x40, 9, 0x40, 8, 0x20, 1})
	failed := errors.New("the write failed")
	f.Fuzz(func(t *testing.T, plays []byte) {
		var fence elector.Fence
		highest := map[string]elector.Token{}
		for i := 0; i+1 < len(plays); i += 2 {
			resource, token := string('a'+rune(plays[i]&3)), elector.Token(plays[i+1])
			if plays[i]&0x20 != 0 {
				token += elector.MaxToken - 2 // about the bound
			}
			want, ran := error(nil), false
			switch {
			case token == 0 || token > elector.MaxToken:
				want = elector.ErrInvalid
			case token < highest[resource]:
				want = elector.ErrStale
			default:
				highest[resource] = token
			}
			var err error
			switch {
			case plays[i]&0x80 != 0:
				err = fence.Admit(t.Context(), resource, token)
			case plays[i]&0x40 != 0: // a write that fails may have had an effect: its token counts
				if want == nil {
					want = failed
				}
				err = fence.Do(t.Context(), resource, token, func(context.Context) error { return failed })
			default:
				err = fence.Do(t.Context(), resource, token, func(context.Context) error { ran = true; return nil })
				if ran != (want == nil) {
					t.Fatalf("write %d to %s with token %d ran: %v, want %v", i/2, resource, token, ran, want == nil)
				}
			}
			if !errors.Is(err, want) {
				t.Fatalf("write %d to %s with token %d: %v, want %v", i/2, resource, token, err, want)
			}
		}
	})
}
