package status

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// recordsPerRead is how many records count as one read, if they are read in one request.
const recordsPerRead = 20

// newPaced returns the backend for the groups of a store: their reads wait for their turns.
func newPaced(s *store, b backends.Backend) backends.Backend {
	p := &paced{Backend: b, s: s}
	if many, ok := b.(backends.BatchLoader); ok {
		return &pacedMany{p, many}
	}
	return p
}

type paced struct {
	backends.Backend
	s     *store
	mutex sync.Mutex
	next  time.Time
}

// turn waits until so many reads may be made.
func (p *paced) turn(ctx context.Context, reads int) bool {
	p.mutex.Lock()
	wait := max(0, time.Until(p.next))
	p.next = time.Now().Add(wait + time.Duration(reads)*p.s.gap())
	p.mutex.Unlock()
	return sleep(ctx, wait)
}

func (p *paced) Load(ctx context.Context, name string) (backends.Record, error) {
	if !p.turn(ctx, 1) {
		return backends.Record{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return p.Backend.Load(ctx, name)
}

type pacedMany struct {
	*paced
	many backends.BatchLoader
}

func (p *pacedMany) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	if !p.turn(ctx, (len(names)+recordsPerRead-1)/recordsPerRead) {
		return backends.Outcomes(len(names), context.Cause(ctx))
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return p.many.LoadMany(ctx, names)
}
