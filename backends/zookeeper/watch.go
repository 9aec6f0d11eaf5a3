package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
)

// A reading is the content of one path, and the library's watch that reports
// when it changes. A watch cannot be taken back, so the readings of a path share
// one until it has fired.
//
// Readings after the first need no sync. What one session shows never goes back:
// an event comes before any answer that shows its change, answers come in order,
// and a new connection is only made to a server that has seen as much. Only a
// new session may begin with a server that lags behind, so the first reading on
// a connection syncs where that matters.
type reading struct {
	done chan struct{} // closed when the rest is set

	data []byte
	stat *zk.Stat // nil if the znode does not exist
	err  error

	fired <-chan zk.Event // gets one event, then is closed; nil if there is no watch
	lost  <-chan struct{} // closed when its connection is lost
}

// watching reports whether the watch of a reading that is done has yet to fire.
func (r *reading) watching() bool {
	select {
	case <-r.fired:
		return false
	case <-r.lost: // the library makes it anew, but maybe after the next reading
		return false
	default:
		return r.fired != nil
	}
}

// next returns a reading that is newer than last, or if last is nil, one that
// was not done before. Concurrent callers share one, in a goroutine that goes on
// when they give up.
func (b *Backend) next(ctx context.Context, path string, last *reading, sync bool) (*reading, error) {
	lost, err := b.conn.Connected()
	if err != nil {
		return nil, err
	}
	b.mutex.Lock()
	r := b.readings[path]
	if r == nil || r.isDone() && (last == nil || r == last || !r.watching()) {
		old := r
		r = &reading{done: make(chan struct{}), lost: lost}
		if old != nil && old.watching() {
			r.fired = old.fired
		}
		b.readings[path] = r
		go func() {
			defer close(r.done)
			if sync && (old == nil || old.lost != lost) {
				if _, r.err = b.conn.Sync(path); r.err != nil {
					return
				}
			}
			r.read(b.conn, path)
		}()
	}
	b.mutex.Unlock()
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *reading) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func (r *reading) read(conn *zkconn.Conn, path string) {
	if r.fired == nil {
		r.data, r.stat, r.fired, r.err = conn.GetW(path)
		if !errors.Is(r.err, zk.ErrNoNode) {
			return
		}
		var exists bool
		if exists, _, r.fired, r.err = conn.ExistsW(path); r.err != nil || !exists {
			r.data, r.stat = nil, nil
			return
		}
	}
	if r.data, r.stat, r.err = conn.Get(path); errors.Is(r.err, zk.ErrNoNode) {
		r.data, r.stat, r.err = nil, nil, nil
	}
}

// wait returns nil when a reading is out of date.
func (b *Backend) wait(ctx context.Context, r *reading) error {
	select {
	case <-r.fired:
		drain(r.fired)
		return nil
	case <-r.lost:
		return errLost
	case <-ctx.Done():
		return ctx.Err()
	}
}

// drain waits until a watch that has fired is closed: before, it seems not to have
// fired.
func drain(fired <-chan zk.Event) {
	for range fired {
	}
}

// Watch implements [backends.Watcher], with the errors of Load.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		for last := (*reading)(nil); ; {
			r, err := b.next(ctx, b.path(name), last, true)
			if err != nil {
				return err
			}
			var record backends.Record
			if r.stat != nil {
				if record, err = decode(name, r.data, r.stat); err != nil {
					return err
				}
			}
			changed(record)
			if err := b.wait(ctx, r); err != nil {
				return err
			}
			last = r
		}
	})
}

// WatchPresence implements [backends.PresenceWatcher], with the errors of Load.
func (b *Backend) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		if err := b.attend(ctx, leaderPath(b.path(name)), held.Attempt.Nonce); !errors.Is(err, backends.ErrDeposed) {
			return fmt.Errorf("the leader's node: %w", err)
		}
		return backends.ErrDeposed
	})
}

// attend returns ErrDeposed when the leader's node is not that of the
// acquisition. The node of another session is not ours, even if it names our
// acquisition: our session has expired then.
func (b *Backend) attend(ctx context.Context, path, nonce string) error {
	for last := (*reading)(nil); ; {
		r, err := b.next(ctx, path, last, false)
		if err != nil {
			return err
		}
		ours := r.stat != nil && string(r.data) == nonce && r.stat.EphemeralOwner == b.conn.SessionID()
		switch {
		case ours:
			if err := b.wait(ctx, r); err != nil {
				return err
			}
		case last != nil:
			return backends.ErrDeposed
		}
		// Otherwise it may be another caller's reading, sent before this
		// acquisition was made: one more shows it.
		last = r
	}
}
