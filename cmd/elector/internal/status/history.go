package status

import (
	"encoding/json"
	"net/http"
	"time"
)

// A term is one of the latest terms of an election. Times are those of the clocks of the
// machines that led.
type term struct {
	ID     string    `json:"id"`
	Token  uint64    `json:"token"`
	Start  time.Time `json:"start,omitzero"`
	End    time.Time `json:"end,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// serveHistory answers for ?election=NAME, and &store=STORE if several have it, with the
// latest terms, the oldest first, as they were read last.
func (f *Fleet) serveHistory(w http.ResponseWriter, r *http.Request) {
	name, store := r.URL.Query().Get("election"), r.URL.Query().Get("store")
	f.mutex.Lock()
	var found []*election
	for _, s := range f.stores {
		for _, e := range s.elections {
			if e.name == name && (store == "" || s.name == store) {
				found = append(found, e)
			}
		}
	}
	terms := []term{}
	if len(found) == 1 {
		for _, t := range found[0].terms {
			terms = append(terms, term{t.ID, t.Token, t.Start, t.End, t.Reason.String()})
		}
	}
	f.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	e := json.NewEncoder(w)
	switch len(found) {
	case 0:
		w.WriteHeader(http.StatusNotFound)
		e.Encode(map[string]string{"election": name, "error": "this election is not watched here"})
	case 1:
		e.Encode(map[string]any{"election": name, "now": time.Now(), "terms": terms})
	default:
		w.WriteHeader(http.StatusBadRequest)
		e.Encode(map[string]string{"election": name, "error": "several stores have this election: name one, as in &store=" + found[0].s.name})
	}
}
