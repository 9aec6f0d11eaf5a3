package status

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
)

// The terms of an election, and what Prometheus gets: each state has its name, and a
// vacancy that is normal is no problem.
func TestHistoryAndMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour) // after 2020
		s := newStore(t, "a")
		r := backends.Record{Token: uint64(time.Now().Add(-time.Hour).UnixMicro()), TTL: 15 * time.Second, RenewEvery: 5 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
		for name, holder := range map[string]string{"held": "x", "nightly-1": "", "weekly": ""} {
			r.Holder = holder
			s.Put(name, backends.Encode(name, r))
		}
		r.Holder, r.Extensions = "", `{"c_pause":"0 operator a%22b"}`
		s.Put("paused", backends.Encode("paused", r))
		s.Put("foreign", []byte("{}"))
		f := fleet(t, Options{}, Store{URL: "test://a", Elections: []string{"held", "nightly-1", "weekly", "paused", "foreign"}, VacantOK: []string{"nightly-*"}})
		time.Sleep(3 * time.Second)
		var answer struct{ Terms []term }
		get(t, f, "/history?election=held&store=test://a", 200, &answer)
		if len(answer.Terms) != 1 || answer.Terms[0].ID != "x" || answer.Terms[0].Start.IsZero() || !answer.Terms[0].End.IsZero() {
			t.Errorf("the terms are %+v", answer.Terms)
		}
		get(t, f, "/history?election=other", 404, nil)
		if r := row(t, f, "held"); time.Since(r.Since).Round(10*time.Second) != time.Hour || r.OK {
			t.Errorf("it has led since %v", r.Since)
		}
		if r := row(t, f, "nightly-1"); !r.OK || r.State != "vacant" {
			t.Errorf("%+v", r)
		}
		if r := row(t, f, "paused"); r.State != "paused" || r.PauseReason != `a"b` || r.PausedBy != "operator" {
			t.Errorf("%+v", r)
		}
		metrics := func(want string) {
			t.Helper()
			a := get(t, f, "/metrics", 200, nil)
			body, err := io.ReadAll(a.Body)
			if err != nil || a.Header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
				t.Error(err, a.Header)
			}
			var got []string
			for line := range strings.Lines(string(body)) {
				if !strings.HasPrefix(line, "#") {
					got = append(got, strings.TrimSpace(strings.Replace(line, `backend="test",store="test://a"`, "…", 1)))
				}
			}
			token := fmt.Sprint(r.Token)
			if text := strings.Join(got, "\n"); text != strings.ReplaceAll(want, "TOKEN", token) {
				t.Errorf("the metrics are\n%s\nwant\n%s", text, want)
			}
		}
		metrics(`elector_store_up{…} 1
elector_election_leader{election="held",…} 1
elector_election_leader{election="nightly-1",…} 0
elector_election_leader{election="paused",…} 0
elector_election_leader{election="weekly",…} 0
elector_election_state{election="foreign",…,state="foreign"} 1
elector_election_state{election="held",…,state="held"} 1
elector_election_state{election="nightly-1",…,state="idle"} 1
elector_election_state{election="paused",…,state="paused"} 1
elector_election_state{election="weekly",…,state="vacant"} 1
elector_election_token{election="held",…} TOKEN
elector_election_token{election="nightly-1",…} TOKEN
elector_election_token{election="paused",…} TOKEN
elector_election_token{election="weekly",…} TOKEN
elector_election_unchanged_seconds{election="held",…} 2`)
		s.breaks(backends.ErrUnavailable)
		time.Sleep(time.Minute)
		get(t, f, "/history?election=held", 200, &answer)
		if len(answer.Terms) != 1 {
			t.Errorf("a store that does not answer takes the terms with it: %+v", answer)
		}
		metrics(`elector_store_up{…} 0
elector_election_state{election="foreign",…,state="foreign"} 1
elector_election_state{election="held",…,state="unknown"} 1
elector_election_state{election="nightly-1",…,state="unknown"} 1
elector_election_state{election="paused",…,state="unknown"} 1
elector_election_state{election="weekly",…,state="unknown"} 1`)
	})
}

func TestLabels(t *testing.T) {
	m := &family{name: "m"}
	m.add(uint64(1)<<53-1, "a", "x\"y\\z\n", "b", "")
	if got, want := m.series.String(), `m{a="x\"y\\z\n",b=""} 9007199254740991`+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
