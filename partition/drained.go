package partition

import (
	"context"
	"fmt"
	"slices"

	"github.com/elector-go/elector"
)

// DrainMember makes a member hand all its partitions to the others and own none, while it
// goes on as a member, until UndrainMember or until the others have seen that it has left the
// group: one that restarts with the same ID within a renewal interval stays drained. If all
// members that stay are drained, they own the partitions all the same.
//
// It returns once the group's plan says so; the partitions move as after any other change.
// Any process may call it. DrainMember returns elector.ErrInvalid if the group has no such
// member, or no other one that could own its partitions.
func (g *Group) DrainMember(ctx context.Context, id string) error {
	return g.fail("drain", -1, g.setDrained(ctx, id, true))
}

// UndrainMember ends DrainMember. It returns nil if the member is not drained.
func (g *Group) UndrainMember(ctx context.Context, id string) error {
	return g.fail("undrain", -1, g.setDrained(ctx, id, false))
}

func (g *Group) setDrained(ctx context.Context, id string, drained bool) error {
	if err := g.backend.Describe().Writable(); err != nil {
		return err
	}
	ctx, end, err := g.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	for {
		v, err := g.look(ctx)
		switch {
		case err != nil:
			return err
		case !isPlan(v.plan):
			return fmt.Errorf("%w: the group has no plan %s yet", elector.ErrInvalid, g.planName())
		}
		ids := drainedIn(v.plan)
		if slices.Contains(ids, id) == drained {
			return nil
		}
		if drained {
			if err := v.canDrain(id); err != nil {
				return err
			}
			ids = append(ids, id)
		} else {
			ids = slices.DeleteFunc(ids, func(other string) bool { return other == id })
		}
		p, err := g.readPlan(v.plan)
		if err != nil {
			return err
		}
		next := g.planRecord(v.plan, p)
		if next.Extensions, err = withDrained(next.Extensions, ids); err != nil {
			return fmt.Errorf("record %s has no room for another drained member: %w", g.planName(), err)
		}
		if err := g.swap(ctx, g.planName(), v.plan, next); !isRefused(err) || !g.wait(ctx, g.now()+g.options.RenewEvery/32, nil) {
			return err
		}
	}
}

// canDrain returns an error if there is no such member, or no other one that could own its
// partitions.
func (v view) canDrain(id string) error {
	others := false
	var ids []string
	for _, m := range v.state.Members {
		ids = append(ids, m.ID)
		others = others || m.ID != id && !m.Leaving && !m.Drained
	}
	switch {
	case !slices.Contains(ids, id):
		return fmt.Errorf("%w: the group has no member %q; its members are %q", elector.ErrInvalid, id, ids)
	case !others:
		return fmt.Errorf("%w: no other member could own the partitions of %q", elector.ErrInvalid, id)
	}
	return nil
}
