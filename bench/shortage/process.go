package shortage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

// A process is a child, and what it has told.
type process struct {
	*child.Again
	sights chan sight
	last   sight
	phase  int // how many lines it was told
}

// start starts a child and waits until it is ready to campaign.
func start(ctx context.Context, url string, elections, atATime int) (*process, error) {
	p := &process{sights: make(chan sight, 1024)}
	t := task{URL: url, Elections: elections, AtATime: atATime, Limit: limit,
		Prefix: "shortage_" + strconv.FormatInt(time.Now().UnixNano(), 36)}
	var err error
	p.Again, err = child.StartAgain(taskVariable, t, func(s sight) {
		select {
		case p.sights <- s:
		default: // nobody looks
		}
	})
	if err != nil {
		return nil, err
	}
	if err := p.await(ctx); err != nil {
		return nil, errors.Join(err, p.end())
	}
	return p, nil
}

// end lets the child end by itself, and kills it if it does not.
func (p *process) end() error {
	go p.End()
	select {
	case <-p.Ended():
		return nil
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New("the process does not end with its input"), p.Kill())
	}
}

// begin begins a phase of the child, and waits until that knows of it.
func (p *process) begin(ctx context.Context) error {
	if err := p.Tell(""); err != nil {
		return err
	}
	p.phase++
	return p.await(ctx)
}

// await waits for a sight of the phase.
func (p *process) await(ctx context.Context) error {
	ok, err := p.watch(ctx, 30*time.Second, func() bool { return p.last.Phase == p.phase })
	if err == nil && !ok {
		err = errors.New("the process tells nothing")
	}
	return err
}

// next waits for what the child tells next.
func (p *process) next(ctx context.Context) error {
	select {
	case s := <-p.sights:
		return p.take(s)
	case <-p.Ended():
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		select {
		case s := <-p.sights: // the last may say why
			if err := p.take(s); err != nil {
				return err
			}
		default:
			return fmt.Errorf("the process has ended%s", p.Printed())
		}
	}
}

func (p *process) take(s sight) error {
	if s.Error != "" {
		return errors.New(s.Error)
	}
	p.last = s
	return nil
}

var errPassed = errors.New("the time has passed")

// watch takes what the child tells, until done returns true. It returns false if that was
// not within d.
func (p *process) watch(ctx context.Context, d time.Duration, done func() bool) (bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errPassed)
	defer cancel()
	for {
		switch err := p.next(ctx); {
		case errors.Is(err, errPassed):
			return false, nil
		case err != nil:
			return false, err
		case done():
			return true, nil
		}
	}
}

// rest lets time pass, and takes what the child tells meanwhile.
func (p *process) rest(ctx context.Context, d time.Duration) error {
	_, err := p.watch(ctx, d, func() bool { return false })
	return err
}
