package groups

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/child"
)

// A scene is something that happens to a group.
type scene string

const (
	join  scene = "join"
	leave scene = "leave"
	stop  scene = "stop and continue"
	cut   scene = "network cut"
	crash scene = "crash"
)

// scenes are all of them, in the order in which they are played.
var scenes = []scene{join, leave, stop, cut, crash}

const (
	stopped = 2 // for how many TTLs a member stands still
	dark    = 3 // for how many TTLs a member's network is cut
	calm    = 4 * time.Second
	longest = time.Minute // for a group to settle
)

// ids are the possible members. The first one starts first, and is the one that is stopped,
// cut off and killed; the last one joins and leaves.
var ids = []string{"a", "b", "c", "d"}

// A game is a group that all scenes happen to, one after the other.
type game struct {
	subject subject
	place   *place
	group   string
	ttl     time.Duration
	scenes  []scene
	log     func(format string, args ...any)

	*board
	members map[string]*child.Again
	way     *network.Proxy // of the first member
}

// play returns what the scenes have shown that took place.
func (g *game) play(ctx context.Context) (shown map[scene]map[view]outcome, err error) {
	g.board = newBoard(partitions, history.BootTime)
	g.members, shown = map[string]*child.Again{}, map[scene]map[view]outcome{}
	if g.way, err = network.New(g.place.address); err != nil {
		return nil, err
	}
	defer func() {
		for _, m := range g.members {
			m.Kill() // it may have ended
		}
		err = errors.Join(err, g.way.Close())
	}()
	defer g.place.feed(ctx, g.group)()
	first, last := ids[0], ids[len(ids)-1]
	early := ids[:len(ids)-1]
	for _, id := range early {
		if err := g.start(id); err != nil {
			return nil, err
		}
	}
	if err := g.settle(ctx, early); err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	for _, s := range g.scenes {
		from, members := g.now(), early
		switch s {
		case join:
			members, err = ids, g.start(last)
		case leave:
			g.members[last].End()
		case stop:
			err = g.freeze(ctx, first)
		case cut:
			if err = g.way.Break(network.Cut); err == nil {
				err = errors.Join(wait(ctx, dark*g.ttl), g.way.Heal())
			}
		case crash:
			at := g.now()
			members, err = early[1:], g.members[first].Kill()
			g.killed(first, at)
		}
		if err == nil {
			err = g.settle(ctx, members)
		}
		if err != nil {
			return shown, fmt.Errorf("%s: %w", s, err)
		}
		shown[s] = map[view]outcome{}
		for _, v := range g.subject.views {
			o := g.judge(v, span{from, g.now()})
			shown[s][v] = o
			g.log("%s, %s, %s: %s", g.group, s, v, o)
		}
	}
	return shown, nil
}

func (g *game) start(id string) error {
	address := g.place.address
	if id == ids[0] {
		address = g.way.Address()
	}
	m, err := child.StartAgain(memberVariable,
		task{Subject: g.subject.name, URL: g.place.url(address), Group: g.group, ID: id, IDs: ids, Partitions: partitions, TTL: g.ttl},
		func(m message) { g.take(id, m) })
	if err == nil {
		g.members[id] = m
	}
	return err
}

// freeze stops a member, and lets it go on later.
func (g *game) freeze(ctx context.Context, id string) error {
	pid := g.members[id].PID()
	if err := child.Freeze(pid); err != nil {
		return err
	}
	from := g.now()
	err := wait(ctx, stopped*g.ttl)
	g.froze(id, span{from, g.now()})
	return errors.Join(err, child.Thaw(pid))
}

// settle waits until the members share the partitions, and nothing has changed for a while.
func (g *game) settle(ctx context.Context, members []string) error {
	for deadline := g.now() + longest; ; {
		err := g.settled(g.subject.views, members, calm)
		if err == nil {
			return nil
		}
		if g.now() > deadline {
			return fmt.Errorf("the group did not settle within %v: %w%s", longest, err, g.printed())
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// printed is what the members printed as errors.
func (g *game) printed() (all string) {
	for _, id := range ids {
		if m := g.members[id]; m != nil {
			all += m.Printed()
		}
	}
	return all
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o outcome) String() string {
	text := fmt.Sprintf("%d moves; two at work for %.4f s at most, %.4f s in all; none at work on those that moved for %.3f s, on any for %.3f s at most; %d stood still and did not move",
		o.moves, o.longest.Seconds(), o.sum.Seconds(), median(o.idle).Seconds(), o.most().Seconds(), len(o.still))
	if o.open {
		text += "; NOT WORKED ON at the end"
	}
	return text
}
