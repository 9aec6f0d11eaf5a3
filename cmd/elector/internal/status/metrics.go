package status

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// serveMetrics answers with what the page shows, in the text form of Prometheus. The labels
// are those of package electorprom, and the store.
func (f *Fleet) serveMetrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	io.WriteString(w, f.metrics(time.Now()))
}

// A family is a metric with its series. What is not known has no series.
type family struct {
	name, help string
	series     strings.Builder
}

// add adds a series, with names and values of labels in turn.
func (f *family) add(value any, labels ...string) {
	for i := 0; i < len(labels); i += 2 {
		labels[i/2] = labels[i] + `="` + escaping.Replace(labels[i+1]) + `"`
	}
	fmt.Fprintf(&f.series, "%s{%s} %v\n", f.name, strings.Join(labels[:len(labels)/2], ","), value)
}

var escaping = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func (f *Fleet) metrics(now time.Time) string {
	up := &family{name: "elector_store_up", help: "Whether the store answers elector serve."}
	leader := &family{name: "elector_election_leader", help: "Whether the election has a leader whose lease has not lapsed."}
	state := &family{name: "elector_election_state", help: "1 for the state of the election: held, draining, vacant, idle (vacant as is normal), paused, lapsed, foreign, denied or unknown."}
	token := &family{name: "elector_election_token", help: "The fencing token of the latest term."}
	unchanged := &family{name: "elector_election_unchanged_seconds", help: "For how long the leader's record was seen unchanged."}
	lossy := &family{name: "elector_election_lossy", help: "Present where the store may lose acknowledged writes, so that two processes may lead at the same time."}
	members := &family{name: "elector_serve_group_members", help: "How many members of the group run."}
	without := &family{name: "elector_serve_group_without_owner", help: "How many partitions of the group have no owner."}
	f.mutex.Lock()
	for _, s := range f.stores {
		backend, _, _ := strings.Cut(s.name, ":")
		up.add(number(s.up()), "backend", backend, "store", s.name)
		for _, e := range s.elections {
			r := e.row(now)
			labels := func(more ...string) []string {
				return append([]string{"election", e.name, "backend", backend, "store", s.name}, more...)
			}
			name := r.State
			switch {
			case name == "vacant" && r.OK:
				name = "idle"
			case name == "held" && r.Draining:
				name = "draining"
			}
			state.add(1, labels("state", name)...)
			if r.Error != "" || r.State == "unknown" {
				continue
			}
			leader.add(number(r.State == "held"), labels()...)
			token.add(r.Token, labels()...)
			if r.Lossy != "" {
				lossy.add(1, labels()...)
			}
			if r.ID != "" {
				unchanged.add(r.Unchanged, labels()...)
			}
		}
		for _, g := range s.groups {
			if r := g.row(now); r.Error == "" && r.State != "unknown" {
				members.add(r.Members, "group", g.name, "backend", backend, "store", s.name)
				without.add(r.Without, "group", g.name, "backend", backend, "store", s.name)
			}
		}
	}
	f.mutex.Unlock()
	var all strings.Builder
	for _, m := range []*family{up, leader, state, token, unchanged, lossy, members, without} {
		if m.series.Len() > 0 {
			fmt.Fprintf(&all, "# HELP %s %s\n# TYPE %s gauge\n%s", m.name, m.help, m.name, m.series.String())
		}
	}
	return all.String()
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}
