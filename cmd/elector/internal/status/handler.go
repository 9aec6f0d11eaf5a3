package status

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/elector-go/elector/electorhttp"
)

// Handler returns the handler of the page and of what it shows as JSON. It never
// waits for a store, except for /leader, which reads the record.
func (f *Fleet) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", servePage)
	mux.HandleFunc("GET /elections", f.serveElections)
	mux.HandleFunc("GET /leader", f.serveLeader)
	mux.HandleFunc("GET /history", f.serveHistory)
	mux.HandleFunc("GET /metrics", f.serveMetrics)
	mux.Handle("GET /healthz", electorhttp.Live())
	mux.HandleFunc("GET /readyz", f.serveReady)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		mux.ServeHTTP(w, r)
	})
}

// A snapshot is the answer of /elections. With ?since=SEQ of an earlier answer it
// has only the elections and groups that have changed since, unless Complete.
type snapshot struct {
	Seq       string        `json:"seq"`
	Complete  bool          `json:"complete"`
	Now       time.Time     `json:"now"`
	Stores    []storeRow    `json:"stores"`
	Elections []electionRow `json:"elections"`
	Groups    []groupRow    `json:"groups"`
}

type storeRow struct {
	Store     string  `json:"store"`
	Answers   bool    `json:"answers"`
	Listed    bool    `json:"listed"` // its elections are known
	Error     string  `json:"error,omitempty"`
	Listing   string  `json:"listing_error,omitempty"`
	Since     float64 `json:"failing_seconds,omitempty"`
	Elections int     `json:"elections"`
	Groups    int     `json:"groups"`
	Every     float64 `json:"read_every_seconds"`
}

// An electionRow has the Status as last read. Its state is also "unknown": it was
// not read yet, or the store does not answer; or "foreign" or "denied", with an Error.
type electionRow struct {
	Store string `json:"store"`
	electorhttp.Status
	Renewed bool      `json:"renewed"`             // a change was seen, so the leader was alive
	Since   time.Time `json:"since,omitzero"`      // when the term or the vacancy began, by the leader's clock
	OK      bool      `json:"vacant_ok,omitempty"` // it is normally vacant
	Age     float64   `json:"read_seconds_ago"`
	Error   string    `json:"error,omitempty"`
}

func (f *Fleet) serveElections(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(f.snapshot(r.URL.Query().Get("since")))
}

func (f *Fleet) snapshot(since string) snapshot {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var epoch int64
	var seq uint64
	n, _ := fmt.Sscanf(since, "%d.%d", &epoch, &seq)
	now := time.Now()
	s := snapshot{Seq: fmt.Sprintf("%d.%d", f.epoch, f.seq), Complete: n != 2 || epoch != f.epoch, Now: now, Elections: []electionRow{}, Groups: []groupRow{}}
	for _, st := range f.stores {
		s.Stores = append(s.Stores, st.row(now))
		for _, e := range st.elections {
			if s.Complete || e.seq > seq {
				s.Elections = append(s.Elections, e.row(now))
			}
		}
		for _, g := range st.groups {
			if s.Complete || g.seq > seq {
				s.Groups = append(s.Groups, g.row(now))
			}
		}
	}
	return s
}

func (s *store) row(now time.Time) storeRow {
	r := storeRow{Store: s.name, Answers: s.up(), Listed: s.watching && s.unlisted == nil, Elections: len(s.elections), Groups: len(s.groups)}
	r.Every = (s.pace(len(s.elections)) * time.Duration(len(s.elections))).Seconds()
	switch {
	case s.failing():
		r.Error, r.Since = inner(s.err), max(now.Sub(s.since).Seconds(), 0.001)
	case s.heard.IsZero():
		r.Error = "it has not answered yet"
	}
	if s.unlisted != nil {
		r.Listing = inner(s.unlisted)
	}
	return r
}

func (e *election) row(now time.Time) electionRow {
	r := electionRow{Store: e.s.name, Status: e.status, Renewed: e.renewed}
	r.Election = e.name
	r.OK = e.idle
	if n := len(e.terms); n > 0 {
		if r.Since = e.terms[n-1].Start; r.ID == "" {
			r.Since = e.terms[n-1].End
		}
	}
	if !e.read.IsZero() {
		r.Age = now.Sub(e.read).Seconds()
	}
	switch {
	case e.err != nil:
		r.State, r.Error = trouble(e.err), inner(e.err)
	case e.read.IsZero(), e.s.failing():
		r.State = "unknown"
	}
	return r
}

// serveLeader answers for ?election=NAME, and &store=STORE if several have it. NAME may be
// that of a group, whose state is as it was last read.
func (f *Fleet) serveLeader(w http.ResponseWriter, r *http.Request) {
	name, store := r.URL.Query().Get("election"), r.URL.Query().Get("store")
	f.mutex.Lock()
	var found []*election
	var leader http.Handler
	var group *groupRow
	watched, all := 0, true
	for _, s := range f.stores {
		all = all && s.watching
		for _, e := range s.elections {
			watched++
			if (name == "" || e.name == name) && (store == "" || s.name == store) {
				found, leader = append(found, e), e.leader
			}
		}
		for _, g := range s.groups {
			if g.name == name && (store == "" || s.name == store) {
				row := g.row(time.Now())
				row.Strips, group = nil, &row
			}
		}
	}
	f.mutex.Unlock()
	refuse := func(code int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		json.NewEncoder(w).Encode(map[string]string{"election": name, "error": text})
	}
	switch {
	case len(found) == 1 && leader != nil:
		leader.ServeHTTP(w, r)
	case len(found) == 0 && group != nil:
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(group)
	case len(found) < 2 && !all:
		w.Header().Set("Retry-After", "5")
		refuse(http.StatusServiceUnavailable, "the store has not answered yet")
	case len(found) == 0:
		refuse(http.StatusNotFound, "this election is not watched here")
	case name == "":
		refuse(http.StatusBadRequest, strconv.Itoa(watched)+" elections are watched here: name one, as in /leader?election=NAME")
	default:
		refuse(http.StatusBadRequest, "several stores have this election: name one, as in &store="+found[0].s.name)
	}
}

// serveReady answers 200 once each store was tried. One that does not answer is
// what the page is for.
func (f *Fleet) serveReady(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, s := range f.stores {
		if !s.tried {
			http.Error(w, "not all stores were tried yet", http.StatusServiceUnavailable)
			return
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "ready")
}
