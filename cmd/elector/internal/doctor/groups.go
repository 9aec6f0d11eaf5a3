package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

// ErrNoOwner is the error of a group that runs and has partitions that no process owns.
var ErrNoOwner = errors.New("partitions of a group have no owner")

const (
	groupsAtATime = 8
	longestLook   = time.Minute // at one group
)

// groups judges the groups of the store, each as one: a line for each.
func (d *doctor) groups(ctx context.Context, b backends.Backend) {
	l, ok := b.(backends.Lister)
	if !ok {
		d.line("groups", "not looked for: this store cannot list its records; see elector partitions NAME", "", nil)
		return
	}
	listing, cancel := context.WithTimeout(ctx, patience)
	names, err := l.List(listing)
	cancel()
	if err != nil {
		d.doubts("groups", err)
		return
	}
	groups, _ := partition.Find(names)
	cases, free := make([]*groupCase, len(groups)), make(chan struct{}, groupsAtATime)
	var all sync.WaitGroup
	for i, g := range groups {
		free <- struct{}{}
		all.Go(func() {
			cases[i] = judge(ctx, b, g.Group)
			<-free
		})
	}
	all.Wait()
	for i, g := range groups {
		cases[i].report(d, "group "+g.Group)
	}
}

// A groupCase is what is found about a group.
type groupCase struct {
	seen  []string
	fixes []string
	err   error // why it fails
}

func (c *groupCase) report(d *doctor, check string) {
	d.line(check, strings.Join(c.seen, "; "), strings.Join(c.fixes, "; "), c.err)
}

// finds adds a finding. One with a fix is a warning, one with an error a failure.
func (c *groupCase) finds(fix string, err error, format string, args ...any) {
	c.seen = append(c.seen, fmt.Sprintf(format, args...))
	if fix != "" {
		c.fixes = append(c.fixes, fix)
	}
	c.err = errors.Join(c.err, err)
}

// A look is what one read of a group has shown.
type look struct {
	sent    time.Time // before the read
	members []partition.Member
	owners  []partition.Owner
}

func lookAt(ctx context.Context, g *partition.Group) (l look, err error) {
	l.sent = time.Now()
	s, err := g.Assignment(ctx)
	if err != nil {
		return l, err
	}
	l.members = s.Members
	if s.Partitions() > 0 {
		l.owners, err = g.Owners(ctx)
	}
	return l, err
}

// judge looks at a group until all members have renewed and all partitions are where the
// plan wants them, or for C: a record shows only by standing still that its writer is gone.
func judge(ctx context.Context, b backends.Backend, name string) *groupCase {
	c := &groupCase{}
	g, err := partition.New(b, name, &partition.Options{Elector: elector.Options{ID: "elector doctor", Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		c.finds("", err, "%v", err)
		return c
	}
	defer g.Close()
	before, err := lookAt(ctx, g)
	if err != nil {
		c.finds("", err, "%v", err)
		return c
	}
	wait, tick := time.Duration(0), time.Second // C
	for _, m := range before.members {
		wait = max(wait, m.TTL+m.TTL/10)
		tick = min(tick, max(m.TTL/10, 10*time.Millisecond))
	}
	wait = min(wait, longestLook)
	begun, now := time.Now(), before
	for len(before.members) > 0 && !settled(before, now) && now.sent.Sub(begun) <= wait && ctx.Err() == nil {
		pause(ctx, max(tick, time.Since(now.sent))) // at most half of the time is spent reading
		if now, err = lookAt(ctx, g); err != nil {
			c.finds("", err, "%v", err)
			return c
		}
	}
	c.conclude(before, now, now.sent.Sub(begun))
	return c
}

// settled reports whether nothing that the second look has shown stands still.
func settled(before, now look) bool {
	return len(now.owners) > 0 && len(silent(before, now, 0)) == 0 && len(standing(before, now, unowned)) == 0 && len(standing(before, now, misplaced)) == 0
}

// silent returns the members that have not renewed between the looks, if those are as far
// apart as part of C.
func silent(before, now look, apart time.Duration) (gone []partition.Member) {
	for _, m := range now.members {
		renews := func(old partition.Member) bool { return old.Seat == m.Seat && old.Attempt == m.Attempt }
		if slices.ContainsFunc(before.members, renews) && (apart == 0 || apart > m.TTL+m.TTL/10) {
			gone = append(gone, m)
		}
	}
	return gone
}

func unowned(o partition.Owner) bool { return o.ID == "" }

func misplaced(o partition.Owner) bool { return o.ID != "" && o.Planned != "" && o.ID != o.Planned }

// standing returns the partitions of a kind that have not changed between the looks.
func standing(before, now look, kind func(partition.Owner) bool) (same []partition.Owner) {
	for i, o := range now.owners {
		if i < len(before.owners) && kind(o) && kind(before.owners[i]) && o.ID == before.owners[i].ID && o.Token == before.owners[i].Token && o.Planned == before.owners[i].Planned {
			same = append(same, o)
		}
	}
	return same
}

// conclude says what the looks mean, which are so far apart.
func (c *groupCase) conclude(before, now look, apart time.Duration) {
	took := apart.Round(100 * time.Millisecond)
	partitions := len(now.owners)
	if len(now.members) == 0 {
		c.finds("start a member, unless the group was stopped on purpose", nil, "no member runs; %s no owner", counted(partitions, "partition has", "partitions have"))
		return
	}
	c.finds("", nil, "%s %s", counted(len(now.members), "member shares", "members share"), counted(partitions, "partition", "partitions"))
	if partitions == 0 {
		c.finds("look in the log of the members for cannot write the plan", ErrNoOwner, "it has members and no plan")
		return
	}
	for _, m := range now.members {
		switch {
		case m.Leaving:
			c.finds("", nil, "%s leaves", m.ID)
		case m.Drained:
			c.finds("", nil, "%s is drained", m.ID)
		}
	}
	gone := silent(before, now, apart)
	dead := map[string]bool{}
	for _, m := range gone {
		c.finds("", nil, "%s has not renewed seat %d for %v, so it is gone", m.ID, m.Seat, took)
		dead[m.ID] = !slices.ContainsFunc(now.members, func(other partition.Member) bool {
			return other.ID == m.ID && !slices.Contains(gone, other)
		})
	}
	lacks := func(o partition.Owner) bool { return unowned(o) || dead[o.ID] }
	if without := standing(before, now, lacks); len(without) > 0 {
		fix := "elector partitions NAME --each shows the member that should own them; look at its log"
		if len(gone) == len(now.members) {
			fix = "no member of the group renews its seat: start them, or look why they hang"
		}
		c.finds(fix, ErrNoOwner, "%s no owner for %v: %s%s", counted(len(without), "partition has", "partitions have"), took, numbers(without), because(without[0]))
	}
	if late := standing(before, now, func(o partition.Owner) bool { return misplaced(o) && !dead[o.ID] }); len(late) > 0 {
		c.finds(fmt.Sprintf("look at the workers of %s: they return late, or not, when their contexts end", late[0].ID), nil,
			"%s not moved for %v: %s; %d should go from %s to %s", counted(len(late), "partition has", "partitions have"), took, numbers(late), late[0].Partition, late[0].ID, late[0].Planned)
	}
}

func because(o partition.Owner) string {
	if o.Waiting == "" {
		return ""
	}
	return fmt.Sprintf("; %d: %s", o.Partition, o.Waiting)
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// numbers returns the numbers of partitions, the first ten of many.
func numbers(owners []partition.Owner) string {
	var texts []string
	for _, o := range owners[:min(10, len(owners))] {
		texts = append(texts, fmt.Sprint(o.Partition))
	}
	if more := len(owners) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, " ")
}
