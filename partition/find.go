package partition

import (
	"slices"
	"strings"
)

// Records are the records of a group in a store, by their names.
type Records struct {
	Group      string
	Plan       bool  // whether the group has a plan
	Seats      []int // the numbers of its seats, in their order
	Partitions []int // of the partitions that have a record, in their order
}

// Find sorts the names of records into the groups that they belong to, in the order of
// their names, and the elections that belong to none. It looks at the names alone: NAME is
// a group if there are records of two of its three kinds, which are NAME.plan, NAME.seat.N
// and NAME.p.N. So elections that have such a name by chance stay elections.
func Find(names []string) (groups []Records, elections []string) {
	found := map[string]*Records{}
	for _, name := range names {
		group, kind, n, ok := split(name)
		if !ok {
			continue
		}
		r := found[group]
		if r == nil {
			r = &Records{Group: group}
			found[group] = r
		}
		switch kind {
		case "plan":
			r.Plan = true
		case "seat":
			r.Seats = append(r.Seats, n)
		case "p":
			r.Partitions = append(r.Partitions, n)
		}
	}
	for _, name := range names {
		if group, _, _, ok := split(name); !ok || !found[group].isGroup() {
			elections = append(elections, name)
		}
	}
	for _, r := range found {
		if r.isGroup() {
			slices.Sort(r.Seats)
			slices.Sort(r.Partitions)
			groups = append(groups, *r)
		}
	}
	slices.SortFunc(groups, func(a, b Records) int { return strings.Compare(a.Group, b.Group) })
	return groups, elections
}

func (r *Records) isGroup() bool {
	seats, partitions := len(r.Seats) > 0, len(r.Partitions) > 0
	return seats && partitions || r.Plan && (seats || partitions)
}

// split returns the group of a record with this name, if a group may have it.
func split(name string) (group, kind string, n int, ok bool) {
	if group, ok = strings.CutSuffix(name, ".plan"); ok {
		return group, "plan", 0, group != ""
	}
	last := strings.LastIndexByte(name, '.')
	if last < 0 {
		return "", "", 0, false
	}
	n = number(name[last+1:])
	for _, k := range []struct {
		kind string
		most int
	}{{"seat", maxSeats}, {"p", MaxPartitions}} {
		if group, ok = strings.CutSuffix(name[:last], "."+k.kind); ok {
			return group, k.kind, n, group != "" && n >= 0 && n < k.most
		}
	}
	return "", "", 0, false
}
