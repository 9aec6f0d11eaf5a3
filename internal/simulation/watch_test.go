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

var _ backends.Liner = watchLink{}

// A push is a state on its way to the machine, or a place in line.
type push struct {
	r     backends.Record
	place *string
	due   time.Time
}

// Watch implements backends.Watcher.
func (l watchLink) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return l.WatchLine(ctx, name, changed, func(string) {})
}

// WatchLine implements backends.Liner. A cut breaks the stream, as the adapters'
// keep-alives do.
func (l watchLink) WatchLine(ctx context.Context, name string, changed func(backends.Record), placed func(string)) error {
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
		enqueue := func(p push) {
			p.due = time.Now().Add(delay())
			mutex.Lock()
			queue = append(queue, p)
			mutex.Unlock()
			select {
			case more <- struct{}{}:
			default:
			}
		}
		l.on(name).WatchLine(ctx, name, func(r backends.Record) {
			quiet := r.Exists() == last.Exists() && r.Holder == last.Holder && r.Token == last.Token && r.Value == last.Value && r.Extensions == last.Extensions
			if l.w.watch == pushesSome && quiet && !first {
				return
			}
			first, last = false, r
			enqueue(push{r: r})
		}, func(place string) { enqueue(push{place: &place}) })
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
			switch {
			case p.place != nil:
				placed(*p.place)
			case name == election:
				n.saw("push", answer{r: p.r})
				fallthrough
			default:
				changed(p.r)
			}
			time.Sleep(time.Microsecond) // one after the other, so that a seed replays
		}
	}
}
