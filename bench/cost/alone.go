package cost

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/wire"
)

// alone counts what a candidate does without competition.
func (s *subject) alone(ctx context.Context) (counted, error) {
	all := make(map[string][]wire.Counts)
	for range s.rounds() {
		if err := s.aloneOnce(ctx, func(what string, c wire.Counts) { all[what] = append(all[what], c) }); err != nil {
			return nil, err
		}
	}
	var c counted
	for _, what := range []string{FirstAcquire, Opening, Acquire, Resign, Closing} {
		c = append(c, count{what: what, counts: all[what]})
	}
	return c, nil
}

func (s *subject) aloneOnce(ctx context.Context, add func(what string, c wire.Counts)) error {
	election, err := s.newElection(ctx)
	if err != nil {
		return err
	}
	if err := s.firstLeader(ctx, election, add); err != nil {
		return fmt.Errorf("the first leader: %w", err)
	}
	if err := s.nextLeader(ctx, election, add); err != nil {
		return fmt.Errorf("the leader after one that resigned: %w", err)
	}
	return nil
}

func (s *subject) firstLeader(ctx context.Context, election string, add func(what string, c wire.Counts)) (err error) {
	p, err := s.proxy()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c, err := s.open(ctx, election, p.Address())
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if !closed {
			c.Close()
		}
	}()
	if err := campaign(ctx, c); err != nil {
		return err
	}
	add(FirstAcquire, p.Counts())
	if err := quiet(ctx, s.o.TTL, p); err != nil {
		return err
	}
	before := p.Counts()
	if err := resign(ctx, c); err != nil {
		return err
	}
	add(Resign, p.Counts().Since(before))
	if err := quiet(ctx, s.o.TTL, p); err != nil {
		return err
	}
	before = p.Counts()
	closed = true
	if err := c.Close(); err != nil {
		return fmt.Errorf("closing: %w", err)
	}
	add(Closing, p.Counts().Since(before))
	return nil
}

func (s *subject) nextLeader(ctx context.Context, election string, add func(what string, c wire.Counts)) error {
	return s.through(ctx, election, func(c peers.Candidate, p *wire.Proxy) error {
		if err := quiet(ctx, s.o.TTL, p); err != nil {
			return err
		}
		opened := p.Counts()
		add(Opening, opened)
		if err := campaign(ctx, c); err != nil {
			return err
		}
		add(Acquire, p.Counts().Since(opened))
		return resign(ctx, c)
	})
}
