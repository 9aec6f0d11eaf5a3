package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/elector-go/elector/conformance/stores/chaos/network"
)

// A Fault is one way to break something during a round.
type Fault struct {
	Name string

	// on tells whether it can be had at the place.
	on func(*Place) bool

	// strike breaks something, leaves it broken for a while, and mends it. It
	// tells what it does, and blocks until it has been mended.
	strike func(context.Context, *Round) error
}

// Faults returns all that can be had at the place.
func Faults(p *Place) []Fault {
	var all []Fault
	for _, f := range faults() {
		if f.on(p) {
			all = append(all, f)
		}
	}
	return all
}

func faults() []Fault {
	all := slices.Concat(processFaults, []Fault{lockFault}, storeFaults, recordFaults, clusterFaults)
	for _, f := range network.Faults {
		all = append(all, networkFault(f))
	}
	return all
}

// Strike lets the fault happen and waits until a leader writes again.
func (r *Round) Strike(ctx context.Context, f Fault) error {
	for {
		err := f.strike(ctx, r)
		missed := errors.Is(err, errMissed)
		if err != nil && !missed {
			return fmt.Errorf("%s, fault %q: %w", r.place.Name, f.Name, err)
		}
		if err := r.calm(ctx); err != nil {
			return fmt.Errorf("%s, after fault %q: %w", r.place.Name, f.Name, err)
		}
		if !missed {
			return r.remember(ctx)
		}
	}
}

// errMissed says that a fault has not struck: its victim lost its lease just
// then, as it may on a busy machine. It can be tried again.
var errMissed = errors.New("the victim led no more")

// networkFault breaks the network between one candidate and the store.
func networkFault(broken network.Fault) Fault {
	return Fault{
		Name: "network: " + string(broken),
		on:   func(p *Place) bool { return p.Name != File },
		strike: func(ctx context.Context, r *Round) error {
			v, err := r.victim()
			if err != nil {
				return err
			}
			request := r.place.Rules.Request
			each := func(do func(*network.Proxy) error) error {
				var err error
				for _, p := range v.link {
					err = errors.Join(err, do(p))
				}
				return err
			}
			err = each(func(p *network.Proxy) error {
				if broken == network.SlowReplies {
					return p.Delay(0, request*8/10)
				}
				// There and back, between a half of the deadline and two of them.
				oneWay := request/4 + time.Duration(r.random.Int64N(int64(request*3/4)))
				return p.Delay(oneWay, oneWay)
			})
			if err != nil {
				return err
			}
			healed := r.breaks("network: "+string(broken), v.name)
			defer healed()
			err = each(func(p *network.Proxy) error { return p.Break(broken) })
			return errors.Join(err, r.last(ctx, 0.3, 2.5), each((*network.Proxy).Heal))
		},
	}
}

var processFaults = []Fault{
	{Name: "kill -9", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		v, err := r.victim()
		if err != nil {
			return err
		}
		return errors.Join(v.kill(), r.last(ctx, 0, 1.5), r.start(v))
	}},
	{Name: "SIGTERM", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		v, err := r.victim()
		if err != nil {
			return err
		}
		return errors.Join(v.terminate(ctx), r.last(ctx, 0, 1), r.start(v))
	}},
	{Name: "SIGSTOP", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		v, err := r.victim()
		if err != nil {
			return err
		}
		return errors.Join(v.freeze(), r.last(ctx, 0.2, 2.5), v.thaw())
	}},
	{Name: "SIGSTOP between Check and the write", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		v, err := r.leader()
		if err != nil {
			return err
		}
		position := r.log.position()
		if err := v.freezeBeforeWrite(); err != nil {
			return errors.Join(errMissed, v.kill(), r.start(v))
		}
		// A successor must have written, or there is nothing to refuse.
		_, err = r.written(ctx, position, func(name string) bool { return name != v.name })
		return errors.Join(err, v.thaw())
	}},
}

// lockFault stops the leader of a folder where everybody waits for it.
var lockFault = Fault{Name: "SIGSTOP inside the file lock", on: func(p *Place) bool { return p.Name == File }, strike: func(ctx context.Context, r *Round) error {
	v, err := r.leader()
	if err != nil {
		return err
	}
	// Nobody can take over until it goes on or dies: the file backend says so.
	defer r.breaks("SIGSTOP inside the file lock", "")()
	if err := os.WriteFile(v.trigger, nil, 0o600); err != nil {
		return err
	}
	if err := v.awaitFreeze(); err != nil {
		return errors.Join(errMissed, v.kill(), r.start(v))
	}
	if err := r.last(ctx, 0.3, 2.2); err != nil {
		return err
	}
	if r.random.IntN(2) == 0 {
		return v.thaw()
	}
	return errors.Join(v.kill(), r.start(v))
}}

func anywhere(*Place) bool { return true }

// single is a place with one server of ours.
func single(p *Place) bool { return p.store != nil }

func isKind(kinds ...string) func(*Place) bool {
	return func(p *Place) bool { return p.store != nil && slices.Contains(kinds, p.store.Kind) }
}
