package elector

import (
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// What others write into a record, as heirs, requests and histories, is read or
// counts as nothing; what is written is read as it was.
func FuzzSteering(f *testing.F) {
	for _, s := range []string{"", " ", ";", "8 1 host-2", "0 1 ", "3 1 a b", "9 1 x", "-1 1 x", "8 1 %zz", "5 1 host-2 operator ", "5 1  operator draining", "5 1", "1 2 3 r a;2 3  - b", "zz zz zz e a+b%3B"} {
		f.Add(s, "host-2", uint64(5))
	}
	f.Fuzz(func(t *testing.T, value, id string, token uint64) {
		r := backends.Record{Holder: "leader", Token: token, Version: "1"}
		for _, name := range []string{heirName, requestName, historyName} {
			x, err := r.Extensions.With(name, value)
			if err != nil {
				return // no record has it
			}
			r.Extensions = x
		}
		if h := heirOf(r); h.id != "" && checkHeir(h.id) != nil {
			t.Errorf("%q names the heir %q", value, h.id)
		}
		if h := heirOf(r); h.priority < 0 || h.priority > named {
			t.Errorf("%q has the priority %d", value, h.priority)
		}
		if got := inPlace(value, r); got != "" && checkHeir(got) != nil {
			t.Errorf("the place %q is that of %q", value, got)
		}
		if q := requestOf(r); q.token != 0 && (uint64(q.token) != token || q.by != legible(q.by, maxBy) || q.to != "" && checkHeir(q.to) != nil) {
			t.Errorf("%q for token %d is a request for %d in favour of %q", value, token, q.token, q.to)
		}
		r.Token = min(max(token, 1), backends.MaxToken-1)
		for holder, h := range map[string]history{r.Holder: historyOf(r), "x" + id: historyOf(r).begin(r, "x"+id, r.Token+1, 7), "": historyOf(r).end(r.Holder, r.Token, "r", 7)} {
			next := backends.Record{Holder: holder, Token: h[len(h)-1].token, Extensions: h.into(r.Extensions), Version: "2"}
			text, _ := next.Extensions.Get(historyName)
			kept := historyOf(next)
			if len(text) > mostHistory || len(kept) > mostTerms || !slices.Equal(kept, h[len(h)-len(kept):]) {
				t.Errorf("the history %+v is kept as %q and read as %+v", h, text, kept)
			}
		}

		if checkHeir(id) != nil || token == 0 || token > backends.MaxToken {
			return
		}
		h, q := heir{id, 3, "nonce"}, resignRequest{Token(token), "nonce", id, legible(id, maxBy), true}
		r.Extensions = ""
		r.Extensions, _ = r.Extensions.With(heirName, h.String())
		r.Extensions, _ = r.Extensions.With(requestName, q.String())
		if heirOf(r) != h || requestOf(r) != q {
			t.Errorf("%+v is read as %+v, and %+v as %+v", h, heirOf(r), q, requestOf(r))
		}
		place := join(Token(token).String(), id)
		if inPlace(place, r) != id || len(place) > backends.MaxPlace {
			t.Errorf("the place of %q is written as %q and read as %q", id, place, inPlace(place, r))
		}
		if strings.ContainsAny(h.String()+q.String(), "\"\\<>&\x00") {
			t.Errorf("%q or %q needs escapes in JSON", h, q)
		}
	})
}
