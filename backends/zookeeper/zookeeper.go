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
)

// DefaultPrefix is the parent of the records when nothing else is said.
const DefaultPrefix = "/elector"

// minTTL leaves a request 75 ms, a sixth of how long a holder trusts its lease.
const minTTL = 500 * time.Millisecond

// A Backend keeps each record in one znode. Open and New make it.
type Backend struct {
	session *session
	prefix  string // without a slash at its end
	store   string // for errors, without a password
	acl     []zk.ACL

	mutex    sync.Mutex
	readings map[string]*reading // the latest of each watched path
}

var (
	_ backends.PresenceWatcher = (*Backend)(nil)
	_ backends.Batcher         = (*Backend)(nil)
)

// New returns a backend on a connection of yours, which Close leaves open.
// Records are the children of the prefix, an absolute path; an empty prefix
// means [DefaultPrefix]. Znodes are created with the access control list, by
// default anyone's: give zk.DigestACL if the connection has a login. New does
// no I/O: the first request tells whether the store can be used.
//
// Connect with a session timeout above the time that a holder trusts its lease,
// see the parameter session_timeout. The client library by itself is slow to
// give up a server that has gone dark: two thirds of the session timeout, and
// with a server that accepts connections and says nothing ten times that. It
// reconnects by itself, and the elector cannot tell that of a connection of
// yours: a Watch is silent meanwhile, and changes in the very moment of
// reconnecting can stay unseen until the next. A request that cannot be written
// may block the library for ever, which Open prevents. Prefer Open.
func New(conn *zk.Conn, prefix string, acl ...zk.ACL) *Backend {
	life, end := context.WithCancel(context.Background())
	s := &session{conn: conn, life: life, end: end}
	b := newBackend(s, prefix, "zookeeper://"+conn.Server())
	if len(acl) > 0 {
		b.acl = slices.Clone(acl)
	}
	return b
}

func newBackend(s *session, prefix, server string) *Backend {
	if prefix = strings.TrimSuffix(prefix, "/"); prefix == "" {
		prefix = DefaultPrefix
	}
	return &Backend{session: s, prefix: prefix, store: server + prefix, acl: zk.WorldACL(zk.PermAll), readings: map[string]*reading{}}
}

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrUnavailable at once while there is no session, and ErrDenied.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	path := b.path(name)
	r, err := call(ctx, b.session, func() (backends.Record, error) {
		// The library sends requests in no order that callers could choose, so
		// the second one waits for the first.
		if _, err := b.session.conn.Sync(path); err != nil {
			return backends.Record{}, err
		}
		if err := ctx.Err(); err != nil {
			return backends.Record{}, err
		}
		data, stat, err := b.session.conn.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			return backends.Record{}, nil
		}
		if err != nil {
			return backends.Record{}, err
		}
		return decode(name, data, stat)
	})
	if err != nil {
		return backends.Record{}, b.explain(ctx, "reading election "+name, err)
	}
	return r, nil
}

// Swap implements [backends.Backend], with the further errors of Load, and
// ErrDeposed, see [backends.PresenceWatcher].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	swap := b.replace
	if !prev.Exists() {
		swap = b.create
	}
	v, err := swap(ctx, name, prev, next)
	if errors.Is(err, backends.ErrConflict) {
		return backends.Record{}, err
	}
	if err != nil {
		return backends.Record{}, b.explain(ctx, "writing election "+name, err)
	}
	next.Version = v
	return next, nil
}

func (b *Backend) create(ctx context.Context, name string, _, next backends.Record) (backends.Version, error) {
	path, guard := b.path(name), newGuard()
	ops := []any{
		&zk.CreateRequest{Path: path, Data: content(guard, name, next), Acl: b.acl},
		&zk.CreateRequest{Path: guardPath(path, guard), Acl: b.acl},
	}
	if !next.Vacant() {
		ops = append(ops, b.createLeader(path, next))
	}
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

func (b *Backend) replace(ctx context.Context, name string, prev, next backends.Record) (backends.Version, error) {
	guard, dataVersion, err := parseVersion(prev.Version)
	if err != nil {
		return "", err
	}
	path := b.path(name)
	renews := !next.Vacant() && !prev.Vacant() && next.Attempt.Nonce == prev.Attempt.Nonce

	// What becomes of the holder's node is part of the same step. Whether an
	// old one is there cannot be known: its session may have ended.
	var there, gone []any
	switch {
	case renews:
		there = []any{present(path)}
	case next.Vacant():
		there = []any{&zk.DeleteRequest{Path: leaderPath(path), Version: -1}}
	default:
		gone = []any{b.createLeader(path, next)}
		there = []any{&zk.DeleteRequest{Path: leaderPath(path), Version: -1}, gone[0]}
	}
	forms := [][]any{there, gone}
	switch {
	case renews:
		forms = forms[:1]
	case prev.Vacant() && !next.Vacant():
		slices.Reverse(forms)
	}
	for _, form := range forms {
		answers, refused, err := b.multi(ctx, append(b.exchange(name, guard, dataVersion, next), form...))
		switch {
		case err == nil:
			return version(guard, answers[1].Stat.Version), nil
		case refused == 0 && errors.Is(err, zk.ErrNoNode):
			return "", b.unguarded(ctx, path, guard)
		case refused == 1 && (errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode)):
			return "", backends.ErrConflict
		case refused < 2 || !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNodeExists):
			return "", err
		case renews:
			return "", backends.ErrDeposed
		}
		// Refused for the holder's node and nothing else: nothing was applied,
		// and the other form may be tried.
	}
	return "", fmt.Errorf("%w: its node %s comes and goes; somebody changes it by hand", backends.ErrUnavailable, leaderPath(path))
}

// unguarded tells why a record's guard is not there.
func (b *Backend) unguarded(ctx context.Context, path, guard string) error {
	data, err := call(ctx, b.session, func() ([]byte, error) {
		data, _, err := b.session.conn.Get(path)
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

// exchange replaces the content of a record's znode if it is the one with the
// guard and has the version.
func (b *Backend) exchange(name, guard string, dataVersion int32, next backends.Record) []any {
	path := b.path(name)
	return []any{
		&zk.CheckVersionRequest{Path: guardPath(path, guard), Version: -1},
		&zk.SetDataRequest{Path: path, Data: content(guard, name, next), Version: dataVersion},
	}
}

// present checks that the holder's node is there.
func present(path string) any { return &zk.CheckVersionRequest{Path: leaderPath(path), Version: -1} }

// createLeader makes the holder's node, which ends with this session.
func (b *Backend) createLeader(path string, r backends.Record) *zk.CreateRequest {
	return &zk.CreateRequest{Path: leaderPath(path), Data: []byte(r.Attempt.Nonce), Acl: b.acl, Flags: zk.FlagEphemeral}
}

// multi sends operations of which all are applied or none. If one was refused,
// and nothing applied for certain, it says which; otherwise refused is -1.
func (b *Backend) multi(ctx context.Context, ops []any) (answers []zk.MultiResponse, refused int, err error) {
	answers, err = call(ctx, b.session, func() ([]zk.MultiResponse, error) { return b.session.conn.Multi(ops...) })
	if err == nil {
		return answers, -1, nil
	}
	return nil, slices.IndexFunc(answers, func(a zk.MultiResponse) bool { return a.Error != nil }), err
}

// createParents makes a path, from its end, because who may write below a znode
// need not be let into the ones above.
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
	_, err := call(ctx, b.session, func() (string, error) { return b.session.conn.Create(path, nil, 0, b.acl) })
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.store, MinTTL: minTTL, MaxBatch: maxBatch, PushesRenewals: true}
}

// Close implements [backends.Backend]. It ends the calls and watches under way
// and the session, unless that was given to New, and with it the holders'
// nodes. It blocks until the connection is closed: at once, or up to 3 s if no
// server answers; the session then ends with its timeout.
func (b *Backend) Close() error {
	b.session.close()
	return nil
}
