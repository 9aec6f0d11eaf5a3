package cost

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/bench/peers"
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
	way, err := s.proxy()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, way.Close()) }()
	leader, err := s.open(ctx, election, way.Address())
	if err != nil {
		return nil, err
	}
	defer leader.Close()
	if err := campaign(ctx, leader); err != nil {
		return nil, err
	}

	beside, err := s.proxy()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, beside.Close()) }()
	watching, err := s.open(ctx, election, beside.Address())
	if err != nil {
		return nil, err
	}
	defer watching.Close()
	o, observes := watching.(observer)
	if observes {
		var end func() error
		if end, err = observe(ctx, o); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, end()) }()
	}

	if err := pause(ctx, 2*s.o.TTL); err != nil {
		return nil, err
	}
	of, err := windows(ctx, s.windows(), s.o.TTL, way, beside)
	if err != nil {
		return nil, err
	}
	if err := stillLeads(leader); err != nil {
		return nil, err
	}
	observing := count{what: Observing, counts: of[1], connects: true}
	if !observes {
		observing = count{what: Observing, missing: "the library has nothing to observe with"}
	}
	return counted{{what: Holding, counts: of[0], connects: true}, observing}, nil
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
