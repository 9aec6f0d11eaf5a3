package chaos

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/internal/proof/chaos/data"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/internal/testca"
)

// Credentials are what candidates sign in with, in files that can be rotated: a password, and
// where the server has a certificate the authorities that may have signed it. The data in the
// store is written with the administrator's.
type credentials struct {
	stores.Login
	dir    string
	alter  func(context.Context, stores.Login) error // gives the login a password, and ends its connections
	serves *testca.Authority                         // of the server's certificate, nil if it has none
	// gives makes the server show a certificate of the authority, and ends connections.
	gives func(context.Context, *testca.Authority) error
}

func (c *credentials) file(name string) string { return filepath.Join(c.dir, name) }

// write replaces a file at once.
func (c *credentials) write(name, content string) error {
	temporary := c.file(name + ".new")
	return errors.Join(os.WriteFile(temporary, []byte(content), 0o600), os.Rename(temporary, c.file(name)))
}

// passwords is the file with the password, in PostgreSQL's own form too.
const (
	passwords   = "password"
	passfile    = "passfile"
	authorities = "ca.pem"
)

func (c *credentials) savePassword() error {
	return errors.Join(c.write(passwords, c.Password+"\n"), c.write(passfile, "*:*:*:*:"+c.Password+"\n"))
}

// trusts writes the authorities that candidates believe.
func (c *credentials) trusts(all ...*testca.Authority) error {
	content := ""
	for _, a := range all {
		content += string(a.PEM())
	}
	return c.write(authorities, content)
}

// in returns a URL with the login and its files.
func (c *credentials) in(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic("chaos: the address of a store is not a URL")
	}
	u.User = url.User(c.User)
	q := u.Query()
	if c.serves == nil {
		q.Set("password_file", c.file(passwords))
	} else {
		q.Set("passfile", c.file(passfile))
		q.Set("sslmode", "verify-full")
		q.Set("sslrootcert", c.file(authorities))
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// rotatePassword gives the candidates another password, at the server before their file.
func (c *credentials) rotatePassword(ctx context.Context, between func() error) error {
	c.Password = rand.Text()
	return errors.Join(c.alter(ctx, c.Login), between(), c.savePassword())
}

// rotateCertificate gives the server a certificate of another authority, before the
// candidates' file has it.
func (c *credentials) rotateCertificate(ctx context.Context, between func() error) error {
	c.serves = testca.New()
	return errors.Join(c.gives(ctx, c.serves), between(), c.trusts(c.serves))
}

// limit makes the candidates' login, which has no right to make a table, and puts it into the
// place's URL.
func (p *Place) limit(ctx context.Context) (err error) {
	s := p.store
	c := &credentials{Login: stores.Login{User: candidateRole, Password: rand.Text()}}
	switch s.Kind {
	case stores.Etcd:
		c.Login = s.User
		c.alter = func(ctx context.Context, l stores.Login) error {
			return etcdAdmin(ctx, s, func(client *clientv3.Client) error {
				_, err := client.UserChangePassword(ctx, l.User, l.Password)
				return err
			})
		}
	case stores.Postgres:
		c.serves = testca.New()
		c.alter = func(ctx context.Context, l stores.Login) error {
			return runPostgres(ctx, s, "alter role "+l.User+" password '"+l.Password+"'", endPostgres)
		}
		c.gives = func(ctx context.Context, a *testca.Authority) error {
			return errors.Join(stores.PostgresServes(ctx, s, a, a), runPostgres(ctx, s, endPostgres))
		}
		err = errors.Join(createTable(ctx, s), runPostgres(ctx, s, "create role "+c.User+" login password '"+c.Password+"'", grantCandidate, data.Table(c.User)),
			c.gives(ctx, c.serves), stores.PostgresAdmits(ctx, s, "hostssl all "+c.User+" 127.0.0.1/32 scram-sha-256"))
	case stores.MySQL:
		c.alter = func(ctx context.Context, l stores.Login) error {
			return s.MySQLExec(ctx, "alter user "+l.User+" identified by '"+l.Password+"'", "kill user "+l.User)
		}
		err = errors.Join(createTable(ctx, s), s.MySQLExec(ctx, "create user "+c.User+" identified by '"+c.Password+"'", grantCandidate, data.MySQLTable))
	case stores.NATS:
		c.Login = s.User
		c.alter = func(ctx context.Context, l stores.Login) error {
			s.User = l
			return stores.NATSPermit(ctx, s, natsRights) // which ends the connections of the user
		}
	case stores.Redis:
		c.alter = func(ctx context.Context, l stores.Login) error {
			return errors.Join(s.RedisUser(ctx, l, redisRights...), s.RedisDo(ctx, "CLIENT", "KILL", "USER", l.User))
		}
		err = s.RedisUser(ctx, c.Login, redisRights...)
	default:
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the candidates' login: %w", err)
	}
	if c.dir, err = os.MkdirTemp("", "elector-chaos-login-"); err != nil {
		return err
	}
	p.close = append(p.close, func() error { return os.RemoveAll(c.dir) })
	p.credentials = c
	direct := p.url
	p.url = func(through func(string) string) string { return c.in(direct(through)) }
	if err = c.savePassword(); c.serves != nil {
		err = errors.Join(err, c.trusts(c.serves))
	}
	return err
}

// redisRights are those of a candidate, whose guarded writes go through its own connection.
var redisRights = slices.Concat(stores.RedisCandidate, data.RedisRights)

// natsRights are those of a candidate. Its guarded writes are an administrator's.
const natsRights = stores.NATSRights

// endPostgres ends the candidates' connections.
const endPostgres = "select pg_terminate_backend(pid) from pg_stat_activity where usename = '" + candidateRole + "'"

// loginFaults change what candidates sign in with, and take away the room that they need. Each
// lasts, and ends.
var loginFaults = []Fault{
	{Name: "store: password rotated", lasts: true, refuses: true, on: func(p *Place) bool { return p.credentials != nil }, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: password rotated", "")()
		return r.place.credentials.rotatePassword(ctx, func() error { return r.last(ctx, 0, 2) })
	}},
	{Name: "store: certificate and authority rotated", lasts: true, refuses: true, on: func(p *Place) bool { return p.credentials != nil && p.credentials.gives != nil }, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks("store: certificate and authority rotated", "")()
		return r.place.credentials.rotateCertificate(ctx, func() error { return r.last(ctx, 0, 2) })
	}},
	full(stores.Postgres, "connection slots", func(ctx context.Context, s *stores.Store, full bool) error {
		if full {
			return runPostgres(ctx, s, "alter role "+candidateRole+" connection limit 0", endPostgres)
		}
		return runPostgres(ctx, s, "alter role "+candidateRole+" connection limit -1")
	}),
	full(stores.MySQL, "connection slots", func(ctx context.Context, s *stores.Store, full bool) error {
		if full {
			return s.MySQLExec(ctx, "alter user "+candidateRole+" with max_user_connections 1", "kill user "+candidateRole)
		}
		return s.MySQLExec(ctx, "alter user "+candidateRole+" with max_user_connections 0")
	}),
	full(stores.Redis, "memory", func(ctx context.Context, s *stores.Store, full bool) error {
		limit := "0"
		if full {
			limit = "1"
		}
		return s.RedisDo(ctx, "CONFIG", "SET", "maxmemory", limit)
	}),
	full(stores.Etcd, "quota", func(ctx context.Context, s *stores.Store, full bool) error {
		return etcdAdmin(ctx, s, func(client *clientv3.Client) error { return etcdAlarm(ctx, client, full) })
	}),
}

// full is a server without room for what candidates need. An etcd takes no writes then.
func full(kind, what string, set func(ctx context.Context, s *stores.Store, full bool) error) Fault {
	name := "store: " + what + " full"
	return Fault{Name: name, on: isKind(kind), felt: true, lasts: true, refuses: kind == stores.Etcd, strike: func(ctx context.Context, r *Round) error {
		defer r.breaks(name, "")()
		return errors.Join(set(ctx, r.place.store, true), r.last(ctx, 0.5, 3), set(ctx, r.place.store, false))
	}}
}

// etcdAlarm makes the server refuse to grow, as one does whose quota is used up.
func etcdAlarm(ctx context.Context, client *clientv3.Client, on bool) error {
	request := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_DEACTIVATE, Alarm: etcdserverpb.AlarmType_NOSPACE}
	status, err := client.Status(ctx, client.Endpoints()[0])
	if err != nil {
		return err
	}
	request.MemberID = status.Header.MemberId
	if on {
		request.Action = etcdserverpb.AlarmRequest_ACTIVATE
	}
	_, err = etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(ctx, request)
	return err
}
