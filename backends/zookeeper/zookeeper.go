package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
)

// DefaultPrefix is the parent of the records by default.
const DefaultPrefix = "/elector"

// minTTL leaves a request 75 ms, a sixth of how long a holder trusts its lease.
const minTTL = 500 * time.Millisecond

// A Backend keeps each record in one znode. Open and New make it.
type Backend struct {
	base   *backends.Base
	conn   *zkconn.Conn
	prefix string // without a slash at its end
	acl    []zk.ACL

	session time.Duration // the timeout that Open asked for; 0 on a connection of the caller

	mutex    sync.Mutex
	readings map[string]*reading // the latest of each watched path
}

var (
	_ backends.PresenceWatcher = (*Backend)(nil)
	_ backends.Watcher         = (*Backend)(nil)
	_ backends.BatchSwapper    = (*Backend)(nil)
	_ backends.Lister          = (*Backend)(nil)
	_ backends.Inspector       = (*Backend)(nil)
)

// Options are the options of New. The zero value means the defaults.
type Options struct {
	// Prefix is the absolute path of the znode whose children are the records. The
	// default is DefaultPrefix.
	Prefix string

	// ACL is the access control list of the znodes that are created. The default
	// allows everything to anyone: set zk.DigestACL if the connection has a login.
	ACL []zk.ACL

	// ReadOnly makes a handle that only reads and creates nothing: see
	// [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend on your connection, which Close leaves open. options may be nil.
// New returns ErrOptions of package backends for a connection or options that it cannot
// use. It sends nothing, whatever ctx is: the first request shows whether the store can
// be used.
//
// Connect with a session timeout above the time for which a holder trusts its
// lease, see the parameter session_timeout. The client library alone takes long
// to leave a server that does not answer: two thirds of the session timeout, and
// ten times that if the server accepts connections and sends nothing. It
// reconnects by itself, and the elector cannot see that on your connection: a
// Watch is silent meanwhile, and a change at the moment of reconnecting can stay
// unseen until the next one. A request that cannot be written may block the
// library for ever, which Open prevents. Prefer Open.
func New(ctx context.Context, conn *zk.Conn, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of zookeeper.New", backends.ErrOptions)
	if conn == nil {
		return nil, fmt.Errorf("%w: the connection is nil; make one with zk.Connect", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	prefix := strings.TrimSuffix(options.Prefix, "/")
	if wrong := wrongPrefix(prefix); wrong != "" {
		return nil, fmt.Errorf("%w: Prefix %s", errOptions, wrong)
	}
	b := newBackend("zookeeper://"+conn.Server(), prefix)
	b.conn = zkconn.Wrap(conn)
	if len(options.ACL) > 0 {
		b.acl = slices.Clone(options.ACL)
	}
	b.base.SetReadOnly(options.ReadOnly)
	return b, nil
}

func newBackend(server, prefix string) *Backend {
	if prefix = strings.TrimSuffix(prefix, "/"); prefix == "" {
		prefix = DefaultPrefix
	}
	b := &Backend{prefix: prefix, acl: zk.WorldACL(zk.PermAll), readings: map[string]*reading{}}
	b.base = backends.NewBase(server+prefix, func(err error) (string, error) { return classify(err, prefix, b.base.ReadOnly()) })
	return b
}

// call makes a request while there is a session. Without one the library would
// keep it, and send a write long after it was given up.
func call[T any](ctx context.Context, b *Backend, request func() (T, error)) (T, error) {
	if _, err := b.conn.Connected(); err != nil {
		var none T
		return none, err
	}
	return backends.WithContext(ctx, b.base, request)
}

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrDenied, and ErrUnavailable at once while there is no session.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	path := b.path(name)
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		return call(ctx, b, func() (backends.Record, error) {
			// The library sends requests in no order that callers could choose,
			// so the second waits for the first.
			if _, err := b.conn.Sync(path); err != nil {
				return backends.Record{}, err
			}
			if err := ctx.Err(); err != nil {
				return backends.Record{}, err
			}
			data, stat, err := b.conn.Get(path)
			if errors.Is(err, zk.ErrNoNode) {
				return backends.Record{}, nil
			}
			if err != nil {
				return backends.Record{}, err
			}
			return decode(name, data, stat)
		})
	})
}

// List implements [backends.Lister], with the further errors of Load. It reads the
// children of the prefix. The client library takes an answer of 1 MB at most, with
// about 10,000 long names or 50,000 short ones.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) ([]string, error) {
		return call(ctx, b, func() ([]string, error) {
			if _, err := b.conn.Sync(b.prefix); err != nil {
				return nil, err
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			names, _, err := b.conn.Children(b.prefix)
			if errors.Is(err, zk.ErrNoNode) {
				return nil, nil
			}
			return names, err
		})
	})
}

// Swap implements [backends.Backend], with the further errors of Load, and
// ErrDeposed, see [backends.PresenceWatcher].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	swap := b.replace
	if !prev.Exists() {
		swap = b.create
	}
	return b.base.Swap(ctx, name, func(ctx context.Context) (_ backends.Record, err error) {
		next.Version, err = swap(ctx, name, prev, next)
		return next, err
	})
}

func (b *Backend) create(ctx context.Context, name string, _, next backends.Record) (backends.Version, error) {
	ops, guard := b.creation(name, next)
	_, refused, err := b.multi(ctx, ops)
	if refused == 0 && errors.Is(err, zk.ErrNoNode) {
		// Nothing was applied. The prefix was never made, or has vanished.
		if err := b.createParents(ctx, b.prefix); err != nil {
			return "", err
		}
		_, refused, err = b.multi(ctx, ops)
	}
	if refused == 0 && errors.Is(err, zk.ErrNodeExists) {
		return "", backends.ErrConflict
	}
	return version(guard, 0), err
}

// creation makes a record's znode with its guard, and the holder's node.
func (b *Backend) creation(name string, next backends.Record) (ops []any, guard string) {
	path, guard := b.path(name), newGuard()
	ops = []any{
		&zk.CreateRequest{Path: path, Data: content(guard, name, next), Acl: b.acl},
		&zk.CreateRequest{Path: guardPath(path, guard), Acl: b.acl},
	}
	return append(ops, b.leaderOps(path, next, false)...), guard
}

// renews reports whether a change leaves the acquisition as it is.
func renews(prev, next backends.Record) bool {
	return !next.Vacant() && !prev.Vacant() && next.Attempt.Nonce == prev.Attempt.Nonce
}

// leaderOps replace the holder's node, which is there or not.
func (b *Backend) leaderOps(path string, next backends.Record, there bool) (ops []any) {
	if there {
		ops = append(ops, &zk.DeleteRequest{Path: leaderPath(path), Version: -1})
	}
	if !next.Vacant() {
		ops = append(ops, b.createLeader(path, next))
	}
	return ops
}

func (b *Backend) replace(ctx context.Context, name string, prev, next backends.Record) (backends.Version, error) {
	before, dataVersion, err := parseVersion(prev.Version)
	if err != nil {
		return "", err
	}
	path := b.path(name)
	renews := renews(prev, next)
	exchange, guard := b.renewal(name, before, dataVersion, next), before
	if !renews {
		exchange, guard = b.succession(name, before, dataVersion, next)
	}

	// The holder's node changes in the same step. Whether an old one exists
	// cannot be known: its session may have ended.
	forms := [][]any{b.leaderOps(path, next, true), b.leaderOps(path, next, false)}
	switch {
	case renews:
		forms = [][]any{{exists(leaderPath(path))}}
	case prev.Vacant() && !next.Vacant():
		slices.Reverse(forms)
	}
	for _, form := range forms {
		answers, refused, err := b.multi(ctx, slices.Concat(exchange, form))
		switch {
		case err == nil:
			return version(guard, answers[1].Stat.Version), nil
		case refused == 0 && errors.Is(err, zk.ErrNoNode):
			return "", b.unguarded(ctx, path, before)
		case refused == 1 && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)):
			return "", backends.ErrConflict
		case refused < len(exchange) || !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists):
			return "", err
		case renews:
			return "", backends.ErrDeposed
		}
		// Refused for the holder's node and nothing else: nothing was applied,
		// and the other form may be tried.
	}
	return "", fmt.Errorf("%w: its node %s comes and goes; it is being changed by hand", backends.ErrUnavailable, leaderPath(path))
}

// unguarded returns why a record's guard does not exist.
func (b *Backend) unguarded(ctx context.Context, path, guard string) error {
	data, err := call(ctx, b, func() ([]byte, error) {
		data, _, err := b.conn.Get(path)
		return data, err
	})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	if now, _, _ := guardOf(data); now == guard {
		return errUnguarded
	}
	return backends.ErrConflict
}

// renewal replaces the content of a record's znode if that has the guard and the
// version.
func (b *Backend) renewal(name, guard string, dataVersion int32, next backends.Record) []any {
	path := b.path(name)
	return []any{
		exists(guardPath(path, guard)),
		&zk.SetDataRequest{Path: path, Data: content(guard, name, next), Version: dataVersion},
	}
}

// succession is renewal for an acquisition or a release, which also replaces the
// guard: see Guard.
func (b *Backend) succession(name, before string, dataVersion int32, next backends.Record) (ops []any, guard string) {
	path, guard := b.path(name), newGuard()
	return []any{
		&zk.DeleteRequest{Path: guardPath(path, before), Version: -1},
		&zk.SetDataRequest{Path: path, Data: content(guard, name, next), Version: dataVersion},
		&zk.CreateRequest{Path: guardPath(path, guard), Acl: b.acl},
	}, guard
}

// exists checks that a znode exists.
func exists(path string) any { return &zk.CheckVersionRequest{Path: path, Version: -1} }

// createLeader creates the holder's node, which ends with this session.
func (b *Backend) createLeader(path string, r backends.Record) *zk.CreateRequest {
	return &zk.CreateRequest{Path: leaderPath(path), Data: []byte(r.Attempt.Nonce), Acl: b.acl, Flags: zk.FlagEphemeral}
}

// multi sends operations of which all are applied or none. If one was refused,
// and so nothing was applied, refused is its index; otherwise it is -1.
func (b *Backend) multi(ctx context.Context, ops []any) (answers []zk.MultiResponse, refused int, err error) {
	answers, err = call(ctx, b, func() ([]zk.MultiResponse, error) { return b.conn.Multi(ops...) })
	if err == nil {
		return answers, -1, nil
	}
	return nil, slices.IndexFunc(answers, func(a zk.MultiResponse) bool { return a.Error != nil }), err
}

// createParents creates a path, from its end, because a user who may write below
// a znode may have no access to those above.
func (b *Backend) createParents(ctx context.Context, path string) error {
	err := b.createParent(ctx, path)
	if i := strings.LastIndexByte(path, '/'); errors.Is(err, zk.ErrNoNode) && i > 0 {
		if err := b.createParents(ctx, path[:i]); err != nil {
			return err
		}
		err = b.createParent(ctx, path)
	}
	return err
}

func (b *Backend) createParent(ctx context.Context, path string) error {
	_, err := call(ctx, b, func() (string, error) { return b.conn.Create(path, nil, 0, b.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), MinTTL: minTTL, MaxSwaps: maxBatch, PushesRenewals: true, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls and watches under way
// and the session, and with it the holders' nodes; a connection that was given
// to New stays open. It blocks until the connection is closed: at once, or up to
// 3 s if no server answers; the session then ends with its timeout.
func (b *Backend) Close() error {
	return b.base.Close(func() error { b.conn.Close(); return nil })
}
