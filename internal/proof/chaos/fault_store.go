package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/stores"
)

// storeFaults break a single server.
var storeFaults = []Fault{
	{Name: "store: restart", on: single, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: restart", "")()
		return errors.Join(r.place.inCalm(func() error { return r.place.store.Restart(ctx) }), r.lookForRecord(ctx))
	}},
	{Name: "store: kill -9", on: single, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: kill -9", "")()
		return errors.Join(r.place.inCalm(r.place.store.Kill), r.last(ctx, 0, 1.5), r.place.store.Restart(ctx), r.lookForRecord(ctx))
	}},
	{Name: "store: SIGSTOP", on: single, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: SIGSTOP", "")()
		return errors.Join(r.place.store.Pause(), r.last(ctx, 0.3, 2.2), r.place.store.Continue())
	}},
	{Name: "store: throttled", on: func(p *Place) bool { return p.gate != nil }, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: throttled", "")()
		before := r.place.gate.refused.Load()
		r.place.gate.on.Store(true)
		err := r.last(ctx, 0.5, 2)
		r.place.gate.on.Store(false)
		if err == nil && r.place.gate.refused.Load() == before {
			err = errors.New("no request came to be refused")
		}
		return err
	}},
	// Not felt: the client sees that an idle connection is closed, and uses another.
	{Name: "store: connections terminated", on: isKind(stores.Postgres), strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: connections terminated", "")()
		return r.postgres(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()`)
	}},
	{Name: "store: read-only", on: isKind(stores.Postgres), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: read-only", "")()
		err := r.postgres(ctx, `alter system set default_transaction_read_only = on`, `select pg_reload_conf()`)
		return errors.Join(err, r.last(ctx, 0.3, 2), r.postgres(ctx, `set default_transaction_read_only = off`, `alter system reset default_transaction_read_only`, `select pg_reload_conf()`))
	}},
	{Name: "store: permission revoked", on: isKind(stores.Postgres), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		err := r.postgres(ctx, `revoke all on elector from `+candidateRole)
		return errors.Join(err, r.last(ctx, 0.3, 2), r.postgres(ctx, grantCandidate))
	}},
	{Name: "store: permission revoked", on: isKind(stores.Etcd), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		user := r.place.store.User.User // the role has the same name
		end := clientv3.GetPrefixRangeEnd(etcdPrefix)
		err := r.etcd(ctx, func(c *clientv3.Client) error {
			_, err := c.RoleRevokePermission(ctx, user, etcdPrefix, end)
			return err
		})
		return errors.Join(err, r.last(ctx, 0.3, 2), r.etcd(ctx, func(c *clientv3.Client) error {
			_, err := c.RoleGrantPermission(ctx, user, etcdPrefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		}))
	}},
	{Name: "store: permission revoked", on: isKind(stores.Kubernetes), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		err := r.place.store.RevokeKubernetes(ctx)
		return errors.Join(err, r.last(ctx, 0.3, 2), r.place.store.GrantKubernetes(ctx))
	}},
	{Name: "store: connections terminated", on: isKind(stores.Redis), strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: connections terminated", "")()
		return r.place.store.RedisDo(ctx, "CLIENT", "KILL", "USER", candidateRole)
	}},
	{Name: "store: read-only", on: isKind(stores.Redis), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: read-only", "")()
		err := r.place.store.RedisDo(ctx, "CONFIG", "SET", "min-replicas-to-write", "1")
		return errors.Join(err, r.last(ctx, 0.3, 2), r.place.store.RedisDo(ctx, "CONFIG", "SET", "min-replicas-to-write", "0"))
	}},
	{Name: "store: permission revoked", on: isKind(stores.Redis), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		err := r.place.store.RedisDo(ctx, "ACL", "SETUSER", candidateRole, "-set", "-get")
		return errors.Join(err, r.last(ctx, 0.3, 2), r.place.store.RedisDo(ctx, "ACL", "SETUSER", candidateRole, "+set", "+get"))
	}},
	{Name: "store: permission revoked", on: isKind(stores.NATS), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		err := stores.NATSPermit(ctx, r.place.store, `publish: { deny: ">" }`)
		return errors.Join(err, r.last(ctx, 0.3, 2), stores.NATSPermit(ctx, r.place.store, natsRights))
	}},
	{Name: "store: connections terminated", on: isKind(stores.MySQL), strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: connections terminated", "")()
		return r.place.store.MySQLExec(ctx, "kill user "+candidateRole)
	}},
	{Name: "store: read-only", on: isKind(stores.MySQL), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: read-only", "")()
		err := r.place.store.MySQLExec(ctx, "set global read_only = 1")
		return errors.Join(err, r.last(ctx, 0.3, 2), r.place.store.MySQLExec(ctx, "set global read_only = 0"))
	}},
	{Name: "store: permission revoked", on: isKind(stores.MySQL), felt: true, refuses: true, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: permission revoked", "")()
		err := r.place.store.MySQLExec(ctx, "revoke select, insert, update on elector from "+candidateRole)
		return errors.Join(err, r.last(ctx, 0.3, 2), r.place.store.MySQLExec(ctx, grantCandidate))
	}},
}

// What candidates are at a PostgreSQL or MySQL server: no superuser, so that there is
// something to revoke.
const (
	candidateRole  = "candidate"
	grantCandidate = `grant select, insert, update on elector to ` + candidateRole
)

// createTable makes the table of elections, which candidates have no right to.
func createTable(ctx context.Context, s *stores.Store) error {
	b, err := backends.Open(ctx, s.URL)
	if err != nil {
		return err
	}
	return b.Close()
}

// etcdPrefix is of the keys that candidates may use.
const etcdPrefix = "/elector/"

// postgres runs statements as the server's administrator.
func (r *Round) postgres(ctx context.Context, statements ...string) error {
	return runPostgres(ctx, r.place.store, statements...)
}

func runPostgres(ctx context.Context, s *stores.Store, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// etcd does something as the server's administrator.
func (r *Round) etcd(ctx context.Context, do func(*clientv3.Client) error) error {
	return etcdAdmin(ctx, r.place.store, do)
}

func etcdAdmin(ctx context.Context, s *stores.Store, do func(*clientv3.Client) error) error {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Address}, Username: s.Admin.User, Password: s.Admin.Password, Context: ctx, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	return errors.Join(do(c), c.Close())
}
