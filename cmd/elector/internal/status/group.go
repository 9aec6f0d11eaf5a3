package status

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/partition"
)

// A group is a group of package partition, whose records are shown as one.
type group struct {
	s    *store
	name string
	g    *partition.Group

	// What the last read has shown. The Fleet's mutex guards it.
	read       time.Time // zero if none has succeeded
	took       time.Duration
	partitions int
	members    []member
	without    int // partitions that no living member owns
	moving     int
	past       past
	err        error
	seq        uint64
}

// A member is one with what was seen of it.
type member struct {
	partition.Member
	owned     int
	unchanged time.Time // since when its seat is as it is
}

// gone reports whether the member has not renewed for C.
func (m member) gone(now time.Time) bool { return now.Sub(m.unchanged) > m.TTL+m.TTL/10 }

// newGroup makes what reads the group. It does no I/O.
func newGroup(s *store, name string) (*group, error) {
	g, err := partition.New(s.paced, name, &partition.Options{Elector: elector.Options{
		ID: "elector serve", Logger: slog.New(slog.DiscardHandler),
		TTL: 10 * time.Minute, RequestTimeout: 30 * time.Second, ReleaseTimeout: time.Second, // a request waits for its turn: see paced
	}})
	if err != nil {
		return nil, err
	}
	return &group{s: s, name: name, g: g}, nil
}

// look reads the group once, and reports whether the store has answered.
func (g *group) look(ctx context.Context) bool {
	begun := time.Now()
	owners, err := g.g.Owners(ctx)
	var state *partition.Assignment
	if err == nil {
		state, err = g.g.Assignment(ctx)
	}
	if ctx.Err() != nil || errors.Is(err, elector.ErrClosed) { // it is no longer watched
		return false
	}
	// Only these concern one group alone.
	ours := errors.Is(err, elector.ErrForeignRecord) || errors.Is(err, elector.ErrDenied)
	if ours {
		g.s.answered(nil, nil)
	} else {
		g.s.answered(nil, err)
	}
	f := g.s.f
	f.mutex.Lock()
	defer f.mutex.Unlock()
	switch {
	case err == nil:
		g.show(state, owners, time.Now())
		g.took = time.Since(begun)
	case ours:
		g.err = err
	default:
		return false // the store shows it
	}
	f.seq++
	g.seq = f.seq
	return true
}

// show takes in what a read has shown. The caller holds the mutex.
func (g *group) show(state *partition.Assignment, owners []partition.Owner, now time.Time) {
	g.err, g.read, g.partitions = nil, now, len(owners)
	var members []member
	alive := map[string]int{} // indices by ID
	for _, m := range state.Members {
		next := member{Member: m, unchanged: now}
		for _, old := range g.members {
			if old.Seat == m.Seat && old.Attempt == m.Attempt {
				next.unchanged = old.unchanged
			}
		}
		if !next.gone(now) {
			alive[m.ID] = len(members)
		}
		members = append(members, next)
	}
	g.without, g.moving = 0, 0
	for _, o := range owners {
		i, found := alive[o.ID]
		if !found {
			g.without++
			continue
		}
		members[i].owned++
		if o.Planned != o.ID {
			g.moving++
		}
	}
	g.members = members
	owned := map[string]int{}
	for _, m := range members {
		owned[m.ID] += m.owned
	}
	g.past.add(now, owned, g.without)
}

// state returns a state of elections: a group is held if each partition has an owner. The
// caller holds the mutex.
func (g *group) state() string {
	gone := 0
	for _, m := range g.members {
		if m.gone(g.read) {
			gone++
		}
	}
	switch {
	case g.err != nil:
		return trouble(g.err)
	case g.read.IsZero(), g.s.failing():
		return "unknown"
	case gone > 0 && gone == len(g.members):
		return "lapsed"
	case g.without > 0 || len(g.members) == 0:
		return "vacant"
	}
	return "held"
}

// mostStrips bounds the strips of a group. Those of the other members are one.
const mostStrips = 24

// A groupRow is a group in the answer of /elections.
type groupRow struct {
	Store      string  `json:"store"`
	Group      string  `json:"group"`
	State      string  `json:"state"` // held, vacant, lapsed, unknown, foreign or denied
	Partitions int     `json:"partitions"`
	Without    int     `json:"without_owner"`
	Moving     int     `json:"moving"`
	Members    int     `json:"members"`
	Age        float64 `json:"read_seconds_ago"`
	Error      string  `json:"error,omitempty"`
	Strips     []strip `json:"strips,omitempty"`
}

// A strip is how many partitions a member has owned. The first one may be of no member, and
// the last one of all that have no strip of their own.
type strip struct {
	Member  string   `json:"member"`
	State   string   `json:"state"` // ready, leaving, drained, gone (it does not renew), left, none or others
	Value   string   `json:"value,omitempty"`
	Owned   int      `json:"owned"`
	Planned int      `json:"planned"`
	History [][2]int `json:"history"` // see past.runs
}

func (g *group) row(now time.Time) groupRow {
	r := groupRow{
		Store: g.s.name, Group: g.name, State: g.state(), Partitions: g.partitions, Without: g.without, Moving: g.moving,
		Members: len(g.members), Strips: []strip{},
	}
	if g.err != nil {
		r.Error = inner(g.err)
	}
	if g.read.IsZero() {
		return r
	}
	r.Age = now.Sub(g.read).Seconds()
	for _, m := range g.members {
		i := slices.IndexFunc(r.Strips, func(s strip) bool { return s.Member == m.ID })
		if i < 0 {
			i = len(r.Strips)
			r.Strips = append(r.Strips, strip{Member: m.ID, Value: m.Value})
		}
		s := &r.Strips[i]
		s.Owned += m.owned
		s.Planned += m.Planned
		switch {
		case m.gone(g.read):
			s.State = cmp.Or(s.State, "gone")
		case m.Leaving:
			s.State = "leaving"
		case m.Drained:
			s.State = "drained"
		default:
			s.State = "ready"
		}
	}
	for _, id := range g.past.owners() {
		if !slices.ContainsFunc(r.Strips, func(s strip) bool { return s.Member == id }) {
			r.Strips = append(r.Strips, strip{Member: id, State: "left"})
		}
	}
	carry := 2*int(max(g.took, g.s.f.o.Every)/step) + 1
	rest := map[string]bool{}
	if len(r.Strips) > mostStrips {
		others := strip{State: "others"}
		for _, s := range r.Strips[mostStrips-1:] {
			rest[s.Member] = true
			others.Owned += s.Owned
			others.Planned += s.Planned
		}
		r.Strips = append(r.Strips[:mostStrips-1], others)
	}
	for i := range r.Strips {
		s := &r.Strips[i]
		s.History = g.past.runs(now, carry, func(m moment) (n int) {
			if s.State != "others" {
				return m.owned[s.Member]
			}
			for id := range rest {
				n += m.owned[id]
			}
			return n
		})
	}
	if len(rest) > 0 {
		r.Strips[len(r.Strips)-1].Member = plural(len(rest), "other member")
	}
	none := strip{State: "none", Owned: g.without, History: g.past.runs(now, carry, func(m moment) int { return m.without })}
	if none.Owned > 0 || slices.ContainsFunc(none.History, func(run [2]int) bool { return run[0] > 0 }) {
		r.Strips = append([]strip{none}, r.Strips...)
	}
	return r
}

// isGroup reports whether a name that is no election's is that of a group. It takes one read
// if it is not.
func (s *store) isGroup(ctx context.Context, name string) (bool, error) {
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	r, err := s.backend.Load(limited, partition.Plan(name))
	if err != nil || !r.Exists() {
		return false, err
	}
	g, err := newGroup(s, name)
	if err != nil {
		return false, nil // too long for one
	}
	defer g.g.Close()
	members, err := g.g.Members(ctx)
	if err != nil || len(members) > 0 {
		return err == nil, err
	}
	state, err := g.g.Assignment(ctx) // foreign if the plan is an election
	return err == nil && state.Partitions() > 0, err
}
