package chaos

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/network"
)

// lastingFaults strike all candidates, for some time, and end. After each there must be a
// leader without any process being restarted.
var lastingFaults = []Fault{
	forAll("network: sign-ins of 3 s", network.SlowToConnect),
	forAll("network: a round trip of 400 ms", network.Latency),
	{Name: "log: nobody reads it", on: anywhere, lasts: true, strike: func(ctx context.Context, r *Round) (err error) {
		v, err := r.leader()
		if err != nil {
			return err
		}
		defer r.breaks("log: nobody reads it", v.name)()
		release := v.log.hold()
		defer release()
		// Something to log, until the pipe is full.
		for range 3 {
			err = errors.Join(err, each(v.link, func(p *network.Proxy) error { return p.Break(network.Reset) }), r.last(ctx, 0.1, 0.2),
				each(v.link, (*network.Proxy).Heal), r.last(ctx, 0.1, 0.4))
		}
		return err
	}},
}

// halfFault kills the oldest half of a group.
var halfFault = Fault{Name: "group: the oldest half killed", on: anywhere, lasts: true, takes: 5, strike: func(ctx context.Context, r *Round) error {
	all := slices.SortedFunc(slices.Values(r.slots), func(a, b *slot) int { return cmp.Compare(a.started, b.started) })
	half := all[:(len(all)+1)/2]
	for _, s := range half {
		if err := s.signal(history.Killed, syscall.SIGKILL); err != nil {
			return err
		}
	}
	for _, s := range half {
		<-s.exited
	}
	err := r.last(ctx, 3.5, 4) // the others have it all, before new ones come
	for _, s := range half {
		err = errors.Join(err, r.start(s))
	}
	return err
}}

// forAll breaks the network of all candidates.
func forAll(name string, broken network.Fault) Fault {
	const oneWay = 200 * time.Millisecond
	return Fault{Name: name, on: func(p *Place) bool { return p.Name != File }, lasts: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks(name, "")()
		var err error
		for _, s := range r.slots {
			err = errors.Join(err, each(s.link, func(p *network.Proxy) error {
				return errors.Join(p.Delay(oneWay, oneWay), p.Break(broken))
			}))
		}
		err = errors.Join(err, r.last(ctx, 1, 4))
		for _, s := range r.slots {
			err = errors.Join(err, each(s.link, (*network.Proxy).Heal))
		}
		return err
	}}
}

// each does something with all proxies of a candidate.
func each(link []*network.Proxy, do func(*network.Proxy) error) (err error) {
	for _, p := range link {
		err = errors.Join(err, do(p))
	}
	return err
}
