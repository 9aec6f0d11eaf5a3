package cost

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/wire"
)

// An observer is a candidate of a library that tells others than candidates who
// leads.
type observer interface {
	// Observe calls changed with each change of the leader, the first
	// included, until ctx ends.
	Observe(ctx context.Context, changed func()) error
}

// steady counts what one leader costs, and one observer.
func (s *subject) steady(ctx context.Context) (c counted, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("holding and observing: %w", err)
		}
	}()
	election, err := s.newElection(ctx)
	if err != nil {
		return nil, err
	}
	observing := count{what: Observing, missing: "the library has nothing to observe with"}
	holding := count{what: Holding, connects: true}
	err = s.through(ctx, election, func(leader peers.Candidate, way *wire.Proxy) error {
		if err := campaign(ctx, leader); err != nil {
			return err
		}
		return s.through(ctx, election, func(watching peers.Candidate, beside *wire.Proxy) (err error) {
			o, observes := watching.(observer)
			if observes {
				var end func() error
				if end, err = observe(ctx, o); err != nil {
					return err
				}
				defer func() { err = errors.Join(err, end()) }()
			}
			if err := pause(ctx, 2*s.o.TTL); err != nil {
				return err
			}
			of, err := windows(ctx, s.windows(), s.o.TTL, way, beside)
			if err != nil {
				return err
			}
			holding.counts = of[0]
			if observes {
				observing = count{what: Observing, counts: of[1], connects: true}
			}
			return stillLeads(leader)
		})
	})
	return counted{holding, observing}, err
}

// observe waits until the observer has seen who leads. The function that it
// returns ends it, and says whether it had ended by itself.
func observe(ctx context.Context, o observer) (end func() error, err error) {
	ctx, stop := context.WithCancel(ctx)
	seen := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() {
		ended <- o.Observe(ctx, func() {
			select {
			case seen <- struct{}{}:
			default:
			}
		})
	}()
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-seen:
	case err := <-ended:
		stop()
		return nil, fmt.Errorf("the observer has ended before it saw the leader: %w", err)
	case <-waiting.Done():
		stop()
		<-ended
		return nil, fmt.Errorf("the observer has not seen the leader: %w", context.Cause(waiting))
	}
	return func() error {
		defer stop()
		select {
		case err := <-ended:
			return fmt.Errorf("the observer has ended by itself: %w", err)
		default:
			stop()
			<-ended
			return nil
		}
	}, nil
}

func stillLeads(c peers.Candidate) error {
	if !c.Leads() {
		return errors.New("the leader has lost its leadership meanwhile, the machine may be too slow to count on")
	}
	return nil
}
