package simulation

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
)

// What the simulated store tells by itself.
type watchKind int

const (
	pushesAll  watchKind = iota // as etcd does
	pushesSome                  // a hint of new leaders, vacancies and extensions, as Postgres does
	polled                      // nothing
)

func (k watchKind) String() string { return [...]string{"pushed", "hinted", "polled"}[k] }

var errStream = errors.New("the simulated stream broke")

// watchLink is a link to a store that can tell of changes.
type watchLink struct{ *link }

// A push is a state on its way to the machine.
type push struct {
	r      backends.Record
	served time.Duration // when the store gave it
	due    time.Time
}

// Watch implements backends.Watcher. A cut breaks the stream, as the adapters'
// keep-alives do.
func (l watchLink) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	m, n := l.machine, l.whose(ctx, "")
	m.runs(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if out, in := l.isCut(); out || in {
		m.sleep(ctx, time.Second)
		return errStream
	}
	life, delay := n.stream()
	var mutex sync.Mutex
	var queue []push
	more := make(chan struct{}, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var last backends.Record
		first := true
		l.on(name).Watch(ctx, name, func(r backends.Record) {
			quiet := r.Exists() == last.Exists() && r.Holder == last.Holder && r.Token == last.Token && r.Value == last.Value && r.Extensions == last.Extensions
			if l.w.watch == pushesSome && quiet && !first {
				return
			}
			first, last = false, r
			mutex.Lock()
			queue = append(queue, push{r, l.w.now(), time.Now().Add(delay())})
			mutex.Unlock()
			select {
			case more <- struct{}{}:
			default:
			}
		})
	}()
	defer func() { cancel(); <-over }()
	end := time.NewTimer(life)
	defer end.Stop()
	for {
		select {
		case <-more:
		case <-end.C:
			m.runs(false)
			return errStream
		case <-ctx.Done():
			return ctx.Err()
		}
		for {
			mutex.Lock()
			if len(queue) == 0 {
				mutex.Unlock()
				break
			}
			p := queue[0]
			queue = queue[1:]
			mutex.Unlock()
			time.Sleep(time.Until(p.due))
			m.runs(false)
			if out, in := l.isCut(); out || in {
				return errStream
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if name == election {
				n.saw("push", answer{r: p.r, served: p.served})
			}
			changed(p.r)
			time.Sleep(time.Microsecond) // one after the other, so that a seed replays
		}
	}
}
