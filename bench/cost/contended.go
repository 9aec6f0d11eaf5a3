package cost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/wire"
)

// contended counts what so many waiters cost, and what a handover to one of
// them does.
func (s *subject) contended(ctx context.Context, waiters int) (c counted, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("with %d waiters: %w", waiters, err)
		}
	}()
	q, err := s.newQueue(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, q.close()) }()
	leader, err := q.lead(ctx)
	if err != nil {
		return nil, err
	}
	for range waiters {
		if err := q.join(ctx); err != nil {
			return nil, err
		}
	}
	if err := pause(ctx, 2*s.o.TTL); err != nil {
		return nil, err
	}
	of, err := windows(ctx, s.windows(), s.o.TTL, q.back)
	if err != nil {
		return nil, err
	}
	waiting := count{what: Waiting, waiters: waiters, counts: of[0], connects: true}
	handover := count{what: Handover, waiters: waiters}
	after := count{what: HandoverAndTTL, waiters: waiters}
	for i := range s.rounds() {
		if i > 0 {
			// Another candidate takes the place of the one that won.
			if err := q.join(ctx); err != nil {
				return nil, err
			}
			if err := pause(ctx, s.o.TTL); err != nil {
				return nil, err
			}
		}
		// Leaders do not resign in step with their waiters.
		if err := pause(ctx, rand.N(s.o.TTL/3)); err != nil {
			return nil, err
		}
		if err := errors.Join(q.nobodyElse(), stillLeads(leader)); err != nil {
			return nil, err
		}
		before, successor, err := s.handOver(ctx, q, leader)
		if err != nil {
			return nil, err
		}
		handover.counts = append(handover.counts, q.Counts().Since(before))
		if err := pause(ctx, s.o.TTL); err != nil {
			return nil, err
		}
		after.counts = append(after.counts, q.Counts().Since(before))
		q.leave(leader)
		leader = successor
		if err := errors.Join(q.nobodyElse(), stillLeads(leader)); err != nil {
			return nil, fmt.Errorf("after handover %d: %w", i+1, err)
		}
	}
	return counted{waiting, handover, after}, nil
}

// handOver lets the leader resign, and returns what had been counted before and
// who leads after it.
func (s *subject) handOver(ctx context.Context, q *queue, leader peers.Candidate) (before wire.Counts, successor peers.Candidate, err error) {
	s.resigning.Lock()
	defer s.resigning.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no candidate leads %v after a resignation", patience))
	defer cancel()
	before = q.Counts()
	resigned := make(chan error, 1)
	go func() { resigned <- resign(ctx, leader) }()
	select {
	case o := <-q.outcomes:
		successor, err = o.candidate, o.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return before, successor, errors.Join(err, <-resigned)
}

// A queue is the leader of an election and those who campaign in it.
type queue struct {
	s           *subject
	election    string
	front, back *wire.Proxy // the way of the first leader, and of everybody else
	life        context.Context
	end         context.CancelFunc
	members     map[peers.Candidate]bool // who is to be closed
	campaigning sync.WaitGroup
	outcomes    chan outcome
}

// An outcome is that of a campaign.
type outcome struct {
	candidate peers.Candidate
	err       error
}

func (s *subject) newQueue(ctx context.Context) (*queue, error) {
	election, err := s.newElection(ctx)
	if err != nil {
		return nil, err
	}
	front, err := s.proxy()
	if err != nil {
		return nil, err
	}
	back, err := s.proxy()
	if err != nil {
		return nil, errors.Join(err, front.Close())
	}
	q := &queue{s: s, election: election, front: front, back: back, members: make(map[peers.Candidate]bool), outcomes: make(chan outcome)}
	q.life, q.end = context.WithCancel(ctx)
	return q, nil
}

func (q *queue) open(ctx context.Context, way *wire.Proxy) (peers.Candidate, error) {
	c, err := q.s.open(ctx, q.election, way.Address())
	if err == nil {
		q.members[c] = true
	}
	return c, err
}

// lead adds the first leader.
func (q *queue) lead(ctx context.Context) (peers.Candidate, error) {
	c, err := q.open(ctx, q.front)
	if err != nil {
		return nil, err
	}
	return c, campaign(ctx, c)
}

// join adds a waiter.
func (q *queue) join(ctx context.Context) error {
	c, err := q.open(ctx, q.back)
	if err != nil {
		return err
	}
	q.campaigning.Go(func() {
		err := c.Campaign(q.life)
		if err != nil {
			err = fmt.Errorf("a waiter's campaign: %w", err)
		}
		select {
		case q.outcomes <- outcome{c, err}:
		case <-q.life.Done():
		}
	})
	return nil
}

// leave closes one that has resigned. If it cannot say so again, no matter.
func (q *queue) leave(c peers.Candidate) {
	delete(q.members, c)
	c.Close()
}

// nobodyElse returns an error if a waiter has been elected without a resignation,
// or has failed.
func (q *queue) nobodyElse() error {
	select {
	case o := <-q.outcomes:
		if o.err != nil {
			return o.err
		}
		return errors.New("a waiter was elected while another leads, the machine may be too slow to count on")
	default:
		return nil
	}
}

// Counts is of everybody.
func (q *queue) Counts() wire.Counts { return q.front.Counts().Plus(q.back.Counts()) }

// close ends everybody.
func (q *queue) close() error {
	q.end()
	var closing sync.WaitGroup
	for c := range q.members {
		closing.Go(func() { c.Close() })
	}
	closing.Wait()
	q.campaigning.Wait()
	return errors.Join(q.front.Close(), q.back.Close())
}
