package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/network"
)

// A Fault is one way to break something during a round.
type Fault struct {
	Name string

	// on tells whether it can be had at the place.
	on func(*Place) bool

	// strike breaks something, leaves it broken for a while, and mends it. It
	// tells what it does, and blocks until it has been mended. It returns
	// errMissed if no candidate can have noticed.
	strike func(context.Context, *Round) error

	// felt is set if it has struck only when a candidate reported trouble.
	felt bool

	// takes is how long it lasts, with what comes of it, in TTLs, if that is much
	// longer than others last.
	takes float64

	// missing reports that after it a partition has no owner before the record that it
	// lacks is taken for gone.
	missing bool

	// lasts is set if it may end the connections of all candidates, or several members at
	// once: after it the partitions of a group have as long as elections have.
	lasts bool

	// refuses is set if the store may refuse candidates meanwhile: for want of a right, or
	// as one that takes no writes. Nothing else explains that.
	refuses bool
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
	all := slices.Concat(processFaults, moveFaults, []Fault{lockFault}, storeFaults, loginFaults, recordFaults, clusterFaults, []Fault{pairFault}, lastingFaults)
	for _, f := range network.Faults {
		all = append(all, networkFault(f))
	}
	return all
}

// Strike lets the fault happen and waits until a leader writes again, or the owner of
// each partition. A fault that no candidate noticed is tried again.
func (r *Round) Strike(ctx context.Context, f Fault) error {
	const tries = 10
	for range tries {
		position := r.log.Position()
		limited, cancel := context.WithTimeoutCause(ctx, 2*patience, fmt.Errorf("not done within %v", 2*patience))
		err := f.strike(limited, r)
		cancel()
		r.quiet(f)
		if err != nil && !errors.Is(err, errMissed) {
			return fmt.Errorf("%s, fault %q: %w", r.place.Name, f.Name, err)
		}
		if err := r.calm(ctx); err != nil {
			return fmt.Errorf("%s, after fault %q: %w", r.place.Name, f.Name, err)
		}
		if err == nil && (!f.felt || r.troubled(position)) {
			return errors.Join(r.remember(ctx), r.show(ctx))
		}
	}
	return fmt.Errorf("%s, fault %q: no candidate noticed it, %d times in a row", r.place.Name, f.Name, tries)
}

// quiet tells that nothing is broken any more, after a fault.
func (r *Round) quiet(f Fault) {
	rules := r.offices[0].Rules
	e := history.Event{Kind: history.Quiet, Before: history.BootTime(), Left: rules.Back}
	switch {
	case r.group == nil || f.lasts:
	case f.missing:
		e.Left = rules.Takeover + rules.Missing()
	default:
		e.Left = rules.Takeover
	}
	e.At = e.Before
	r.tell(e)
}

// errMissed reports that a fault has not struck. Its victim lost its lease just
// then, as it may on a busy machine, or asked for nothing meanwhile.
var errMissed = errors.New("no candidate noticed")

// troubled reports whether a request of a candidate has failed since.
func (r *Round) troubled(position int) bool {
	events, _, _ := r.log.From(position)
	return slices.ContainsFunc(events, func(e history.Event) bool { return e.Kind.IsFailure() })
}

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
			err = each(v.link, func(p *network.Proxy) error {
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
			before := hits(v.link)
			healed := r.breaks("network: "+string(broken), v.name)
			defer healed()
			err = each(v.link, func(p *network.Proxy) error { return p.Break(broken) })
			err = errors.Join(err, r.last(ctx, 0.3, 2.5), each(v.link, (*network.Proxy).Heal))
			if err == nil && broken != network.Refuse && hits(v.link) == before { // a proxy that refuses counts no hits
				return errMissed
			}
			return err
		},
	}
}

// hits counts what has been lost, delayed or reset.
func hits(link []*network.Proxy) (sum int64) {
	for _, p := range link {
		sum += p.Count().Sum()
	}
	return sum
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
		if err := v.freeze(); err != nil {
			return err
		}
		_, goesOn, err := r.stands(ctx)
		defer goesOn()
		return errors.Join(err, r.last(ctx, 0.2, 2.5), v.thaw())
	}},
	{Name: "SIGSTOP between Check and the write", on: anywhere, strike: func(ctx context.Context, r *Round) error {
		v, err := r.leader()
		if err != nil {
			return err
		}
		position := r.log.Position()
		led := r.leads(v)
		if err := v.freezeBeforeWrite(); err != nil {
			return r.replaceMissed(v)
		}
		inLock, goesOn, err := r.stands(ctx)
		defer goesOn()
		if inLock { // no candidate can succeed it
			if err := v.thaw(); err != nil {
				return err
			}
			return errMissed
		}
		if err != nil {
			return errors.Join(err, v.thaw())
		}
		// A successor must have written, or there is nothing to refuse.
		for _, office := range led {
			if err == nil {
				_, err = r.written(ctx, position, office, func(name string) bool { return name != v.name })
			}
		}
		return errors.Join(err, v.thaw())
	}},
}

// replaceMissed ends a process that was asked to stop itself and did not: it
// would do so some other time.
func (r *Round) replaceMissed(s *slot) error {
	if err := errors.Join(s.kill(), r.start(s)); err != nil {
		return err
	}
	return errMissed
}

// lockFault stops the leader of a folder where everybody waits for it.
var lockFault = Fault{Name: insideLock, on: func(p *Place) bool { return p.Name == File }, strike: func(ctx context.Context, r *Round) error {
	if err := r.letNewLead(ctx); err != nil { // older ones have no stop there
		return err
	}
	v, err := r.leader()
	if err != nil {
		return err
	}
	defer r.breaks(insideLock, "")()
	if err := os.WriteFile(v.trigger, nil, 0o600); err != nil {
		return err
	}
	if err := v.awaitFreeze(); err != nil {
		return r.replaceMissed(v)
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

// single is a place with one server that the campaign started.
func single(p *Place) bool { return p.store != nil }

func isKind(kinds ...string) func(*Place) bool {
	return func(p *Place) bool { return p.store != nil && slices.Contains(kinds, p.store.Kind) }
}
