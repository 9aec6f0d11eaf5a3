package scale

import (
	"context"
	"errors"
	"fmt"

	"github.com/elector-go/elector/internal/proof/child"
)

// A process is a child with many elections.
type process struct {
	*child.Again
	messages chan message
}

func start(t task) (p *process, err error) {
	p = &process{messages: make(chan message, 16)}
	p.Again, err = child.StartAgain(childVariable, t, func(m message) { p.messages <- m })
	return p, err
}

// await blocks until the child tells something of a kind; others are passed
// over.
func (p *process) await(ctx context.Context, kind string) (message, error) {
	for {
		select {
		case m := <-p.messages:
			switch m.Kind {
			case kind:
				return m, nil
			case failed:
				return m, errors.New(m.Error)
			}
		case <-p.Ended():
			return message{}, fmt.Errorf("the process has ended and not told %q%s", kind, p.Printed())
		case <-ctx.Done():
			return message{}, fmt.Errorf("waiting for %q: %w", kind, context.Cause(ctx))
		}
	}
}

// report asks the child.
func (p *process) report(ctx context.Context) (message, error) {
	if err := p.Tell(""); err != nil {
		return message{}, err
	}
	return p.await(ctx, report)
}
