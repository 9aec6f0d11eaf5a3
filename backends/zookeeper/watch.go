package zookeeper

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// A reading is what one path was found to hold, and the library's watch that
// tells when it no longer does. A watch cannot be taken back, so the readings
// of a path have one in common for as long as it has not fired.
//
// Readings after the first need no sync. What one session tells never goes back:
// an event comes before any answer that shows its change, answers come in order,
// and a new connection is only made to a server that has seen as much. Only a
// new session may begin with a server that lags behind, so the first reading on
// a connection syncs where that matters.
type reading struct {
	done chan struct{} // closed when the rest is set

	data []byte
	stat *zk.Stat // nil if nothing is there
	err  error

	fired <-chan zk.Event // has one event, then is closed; nil if there is no watch
	lost  <-chan struct{} // closed when the connection is lost that it was made on
}

// watching reports, of one that is done, whether its watch is still to fire.
func (r *reading) watching() bool {
	select {
	case <-r.fired:
		return false
	case <-r.lost: // the library makes it anew, but maybe later than one would read
		return false
	default:
		return r.fired != nil
	}
}

// next returns a reading that is newer than last, or if last is nil, one that
// was not done before. All that ask at the same time share one, in a goroutine
// that goes on when they give up.
func (b *Backend) next(ctx context.Context, path string, last *reading, sync bool) (*reading, error) {
	lost, err := b.session.connected()
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
				if _, r.err = b.session.conn.Sync(path); r.err != nil {
					return
				}
			}
			r.read(b.session.conn, path)
		}()
	}
	b.mutex.Unlock()
	select {
	case <-r.done:
		return r, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-b.session.life.Done():
		return nil, errClosed
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

func (r *reading) read(conn *zk.Conn, path string) {
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

// wait returns nil when the reading is out of date.
func (b *Backend) wait(ctx context.Context, r *reading) error {
	select {
	case <-r.fired:
		for range r.fired { // it is about to be closed, and until then seems not to have fired
		}
		return nil
	case <-r.lost:
		return errLost
	case <-b.session.life.Done():
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch implements [backends.Watcher], with the errors of Load.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	if err := backends.CheckName(name); err != nil {
		return err
	}
	var last *reading
	for {
		r, err := b.next(ctx, b.path(name), last, true)
		var record backends.Record
		if err == nil && r.stat != nil {
			record, err = decode(name, r.data, r.stat)
		}
		if err == nil {
			changed(record)
			last = r
			err = b.wait(ctx, r)
		}
		if err != nil {
			return b.explain(ctx, "watching election "+name, err)
		}
	}
}

// WatchPresence implements [backends.PresenceWatcher], with the errors of Load.
// The node of another session is not ours, even if it names our acquisition:
// our session has expired then.
func (b *Backend) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	if err := backends.CheckName(name); err != nil {
		return err
	}
	var last *reading
	for {
		r, err := b.next(ctx, leaderPath(b.path(name)), last, false)
		if err == nil && (r.stat == nil || string(r.data) != held.Attempt.Nonce || r.stat.EphemeralOwner != b.session.conn.SessionID()) {
			if last == nil { // it may be somebody else's, sent before this acquisition was made
				last = r
				continue
			}
			err = backends.ErrDeposed
		}
		if err == nil {
			last = r
			err = b.wait(ctx, r)
		}
		if err != nil {
			return b.explain(ctx, "watching the leader's node of election "+name, err)
		}
	}
}
