package annex

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// of decodes the extensions of a record.
func of(r backends.Record) Annex { return new(Reader).Of(r) }

// What others write into a record, as bids, requests and histories, is read or counts
// as nothing; what is written is read as it was.
func FuzzAnnex(f *testing.F) {
	for _, s := range []string{"", " ", ";", "2147483648 1 host-2", "0 1 ", "3 1 a b", "2147483649 1 x", "-1 1 x", "9 1 %zz", "5 1 operator ", "5 1 operator draining", "5 1", "1 2 3 r a;2 3  - b", "zz zz zz e a+b%3B", "1 zzzzzzzz zzzzzzzzz r a", "1 -zz -1 x a"} {
		f.Add(s, "host-2", uint64(5))
	}
	f.Fuzz(func(t *testing.T, value, id string, token uint64) {
		r := backends.Record{Holder: "leader", Token: token, Version: "1"}
		for _, name := range []string{BidName, RequestName, HistoryName} {
			x, err := r.Extensions.With(name, value)
			if err != nil {
				return // no record has it
			}
			r.Extensions = x
		}
		if b := of(r).Bid; !b.None() && CheckID(b.ID) != nil || b.Rank < 0 || b.Rank > Named {
			t.Errorf("%q is the bid %+v", value, b)
		}
		if q := of(r).Request; q.Token != 0 && (q.Token != token || q.By != Legible(q.By) || q.To != "" && CheckID(q.To) != nil) {
			t.Errorf("%q for token %d is the request %+v", value, token, q)
		}
		r.Token = min(max(token, 1), backends.MaxToken-1)
		now := time.UnixMilli(7)
		for holder, h := range map[string]History{r.Holder: HistoryOf(r), "x" + id: HistoryOf(r).begin("x"+id, r.Token+1, now), "": HistoryOf(r).end(Resigned, now)} {
			next := backends.Record{Holder: holder, Token: h[len(h)-1].Token, Extensions: h.into(r.Extensions), Version: "2"}
			text, _ := next.Extensions.Get(HistoryName)
			kept := HistoryOf(next)
			if len(text) > MaxHistory || len(kept) > MaxTerms || !slices.Equal(kept, h[len(h)-len(kept):]) {
				t.Errorf("the history %+v is kept as %q and read as %+v", h, text, kept)
			}
			for i, term := range kept {
				if _, err := json.Marshal(term); err != nil {
					t.Error(err)
				}
				if i < len(kept)-1 && term.Reason == "" {
					t.Errorf("%+v goes on, and another term has begun", term)
				}
			}
		}

		vacancy := backends.Record{Version: "3"}
		if x, err := vacancy.Extensions.With(PauseName, value); err == nil {
			vacancy.Extensions = x
			if p := of(vacancy).Pause; p == nil || p.For < 0 || p.For > MaxPause || p.By != Legible(p.By) {
				t.Errorf("%q is the pause %+v", value, p)
			}
		}
		if p := (Pause{time.Duration(min(token, 1<<34)) * time.Millisecond, Legible(id), value}); p.Check() == nil {
			x, err := p.Into("")
			vacancy.Extensions = x
			if read := of(vacancy).Pause; err != nil || read == nil || *read != p {
				t.Errorf("%+v is read as %+v, %v", p, read, err)
			}
		}

		if CheckID(id) != nil || token == 0 || token > backends.MaxToken {
			return
		}
		b, q := Bid{3, id, "nonce"}, Request{token, "nonce", id, Legible(id), true}
		r.Token, r.Extensions = token, ""
		r.Extensions, _ = b.Into(r.Extensions)
		if of(r).Bid != b {
			t.Errorf("%+v is read as %+v", b, of(r).Bid)
		}
		r.Extensions, _ = q.Into(r.Extensions)
		if b = of(r).Bid; b != (Bid{Named, id, "nonce"}) || of(r).Request != q {
			t.Errorf("%+v is read as %+v, and %+v as %+v", b, of(r).Bid, q, of(r).Request)
		}
		if strings.ContainsAny(b.String()+q.String(), "\"\\<>&\x00") {
			t.Errorf("%q or %q needs escapes in JSON", b, q)
		}
	})
}
