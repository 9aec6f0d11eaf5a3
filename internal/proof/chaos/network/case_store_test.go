package network

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

// storeRestart: the store dies for longer than a lease lasts, and comes back:
// one valid lease, and a leader again within tau.
func storeRestart(s *scene) {
	o := short()
	a, b := s.joinThrough(o), s.join(o)
	l := a.lead()
	next := b.campaign()
	b.sees(a)
	a.renewals(1)
	// An object of the emulated GCS whose overwriting a kill interrupts cannot
	// be read any more, and azurite may lose a write that it acknowledges while it
	// ends, which are flaws of the emulators: see stores.startGCS, startAzureBlob.
	var writing sync.Mutex
	if s.store.Kind == stores.GCS || s.store.Kind == stores.AzureBlob {
		a.hooks.Always(func(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
			if c.Op == "swap" {
				writing.Lock()
				defer writing.Unlock()
			}
			return send(ctx)
		})
	}
	began := history.BootTime()
	writing.Lock()
	err := s.store.Kill()
	writing.Unlock()
	s.must(err, "killing the store")
	s.events.Tell(history.Event{Election: s.election, Kind: history.Killed, Before: began, At: history.BootTime()})
	a.endsInTime(l, began)
	next.waits("the store is not there")
	s.must(s.store.Restart(s.context()), "starting the store again")
	back := history.BootTime()
	s.events.Tell(history.Event{Election: s.election, Kind: history.Started, Before: back, At: back})
	_, won := next.won("there is a leader again after the store came back")
	if took := won.Before - back - b.allowance(back); took > takeoverWithin(o) {
		s.Errorf("B leads %v after the store came back, later than tau = %v", took, takeoverWithin(o))
	}
	if n, _ := a.asked("swap", began); n == 0 {
		s.Errorf("A did not try to renew while the store was dead")
	}
}

// denied: access is revoked while a candidate leads. The lease is lost by H,
// with a typed error, no hot loop and no password in anything that is said. The candidate goes
// on, and leads again when access is given back.
func denied(s *scene) {
	right := secured(s)
	a := s.joinVia(right.url, short())
	l := a.lead()
	a.renewals(1)
	began := history.BootTime()
	s.must(right.revoke(), "revoking access")
	a.recorder.Event(history.Event{Kind: history.Fault, Before: began, Detail: "access revoked"})
	done := history.BootTime()
	a.endsInTime(l, began)

	a.mutex.Lock()
	requests := a.requests
	a.mutex.Unlock()
	refused, asked := 0, 0
	var said strings.Builder
	for _, r := range requests {
		if r.err != nil {
			said.WriteString(r.err.Error())
		}
		if r.at >= began {
			asked++
		}
		// A request that the end of the lease cuts short may come to no answer. A server may
		// see that first, whose error is of another type.
		cutShort := r.err != nil && strings.Contains(r.err.Error(), context.DeadlineExceeded.Error())
		if errors.Is(r.err, elector.ErrDenied) {
			refused++
		} else if r.at-r.took > done && !cutShort {
			s.Errorf("after access was revoked a request (%s) gives %v, want ErrDenied", r.op, r.err)
		}
	}
	if refused == 0 {
		s.Errorf("the fault did not happen: no request was refused")
	}
	// Two for each try, and the pause between tries is an eighth of RenewEvery
	// at the least.
	if most := 10 + int(2*8*(history.BootTime()-began)/a.every); asked > most {
		s.Errorf("%d requests after access was revoked, more than %d: a hot loop", asked, most)
	}
	// A try that ends while a connection is set up has no answer of the store, and the next one
	// goes on with that connection.
	var err error
	s.until("TryCampaign has an answer of the store", func() bool {
		_, err = a.TryCampaign(s.context())
		return !errors.Is(err, elector.ErrUnavailable)
	})
	if !errors.Is(err, elector.ErrDenied) {
		s.Errorf("TryCampaign of one whose access was revoked gives %v, want ErrDenied", err)
	} else {
		said.WriteString(err.Error())
	}
	again := a.campaign()
	s.until("its state shows that access is denied", func() bool { return a.State() == elector.Refused })
	s.must(right.grant(), "granting access")
	again.won("it leads again once access is given back")
	said.WriteString(context.Cause(l.Context()).Error())
	said.WriteString(a.log.String())
	if strings.Contains(said.String(), right.login.Password) {
		s.Errorf("the password is told in a log or an error")
	}
}

// A right is that of a login to hold elections, by the URL. It is there until revoke is
// called, and again after grant.
type right struct {
	login         stores.Login
	url           string
	revoke, grant func() error
}

// secured makes a place in a store where there is a right.
func secured(s *scene) right {
	switch s.store.Kind {
	case stores.Etcd:
		return securedEtcd(s)
	case stores.Postgres:
		return securedPostgres(s)
	case stores.ZooKeeper:
		return securedZooKeeper(s)
	case stores.Consul:
		return securedConsul(s)
	case stores.MySQL:
		return securedMySQL(s)
	case stores.NATS:
		return securedNATS(s)
	case stores.Redis:
		return securedRedis(s)
	}
	s.Fatalf("%s has no logins", s.store.Kind)
	panic("not reached")
}

// securedEtcd starts a server of its own, since a server that wants a password
// wants it of every client.
func securedEtcd(s *scene) right {
	const prefix = "/elector/"
	end := clientv3.GetPrefixRangeEnd(prefix)
	store, err := stores.EtcdWithAuth(s.context(), prefix)
	s.must(err, "starting an etcd with authentication")
	s.Cleanup(func() { must(s, store.Stop()) })
	s.store = store
	admin, err := clientv3.New(clientv3.Config{Endpoints: []string{store.Address}, Username: store.Admin.User, Password: store.Admin.Password, Logger: zap.NewNop()})
	s.must(err, "connecting to etcd")
	s.Cleanup(func() { admin.Close() })
	role := store.User.User // it has the same name
	return right{store.User, store.User.In(store.PasswordURL), func() error {
		_, err := admin.RoleRevokePermission(s.context(), role, prefix, end)
		return err
	}, func() error {
		_, err := admin.RoleGrantPermission(s.context(), role, prefix, end, clientv3.PermissionType(clientv3.PermReadWrite))
		return err
	}}
}

func securedPostgres(s *scene) right {
	as := s.store.Admin.In(s.store.PasswordURL)
	s.handle(as + "?create=true")
	admin, err := pgx.Connect(s.context(), as)
	s.must(err, "connecting to PostgreSQL")
	s.Cleanup(func() { admin.Close(context.Background()) })
	return sqlRight(s, "elector", func(statement string) error {
		_, err := admin.Exec(s.context(), statement)
		return err
	})
}

func securedMySQL(s *scene) right {
	s.handle(s.store.Admin.In(s.store.PasswordURL) + "?create=true")
	return sqlRight(s, "secured.elector", func(statement string) error { return s.store.MySQLExec(s.context(), statement) })
}

func sqlRight(s *scene, table string, exec func(statement string) error) right {
	user := s.store.User.User
	r := right{s.store.User, s.store.User.In(s.store.PasswordURL),
		func() error { return exec("revoke select, insert, update on " + table + " from " + user) },
		func() error { return exec("grant select, insert, update on " + table + " to " + user) }}
	s.must(r.grant(), "granting access")
	return r
}

func securedZooKeeper(s *scene) right {
	login := stores.Login{User: "app", Password: "a-password-that-nobody-tells"}
	prefix := "/" + s.election
	conn, events, err := zk.Connect([]string{s.store.Address}, 30*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	s.must(err, "connecting to ZooKeeper")
	s.Cleanup(conn.Close)
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	for _, as := range []string{login.User + ":" + login.Password, "another:secret"} {
		s.must(conn.AddAuth("digest", []byte(as)), "signing in")
	}
	u, err := url.Parse(s.store.URL)
	s.must(err, "reading the store's URL")
	u.Path = prefix
	allow := func(user, password string) error {
		_, err := conn.SetACL(prefix+"/"+s.election, zk.DigestACL(zk.PermAll, user, password), -1)
		return err
	}
	return right{login, login.In(u.String()),
		func() error { return allow("another", "secret") },
		func() error { return allow(login.User, login.Password) }}
}

// securedConsul starts a server of its own, as securedEtcd does.
func securedConsul(s *scene) right {
	store, err := stores.ConsulWithACL(s.context(), `key_prefix "elector/" { policy = "write" }`)
	s.must(err, "starting a Consul with ACLs")
	s.Cleanup(func() { must(s, store.Stop()) })
	s.store = store
	file := filepath.Join(s.TempDir(), "token")
	s.must(os.WriteFile(file, []byte(store.User.Password), 0o600), "writing the token")
	return right{store.User, store.URL + "?token_file=" + file,
		func() error { return stores.ConsulRevoke(s.context(), store) },
		func() error { return stores.ConsulGrant(s.context(), store) }}
}

// securedNATS starts a server of its own, as securedEtcd does.
func securedNATS(s *scene) right {
	store, err := stores.NATSWithUsers(s.context(), stores.NATSRights)
	s.must(err, "starting a NATS with users")
	s.Cleanup(func() { must(s, store.Stop()) })
	s.store = store
	s.handle(store.Admin.In(store.URL) + "?create=true")
	return right{store.User, store.User.In(store.URL),
		func() error { return stores.NATSPermit(s.context(), store, `publish: { deny: ">" }`) },
		func() error { return stores.NATSPermit(s.context(), store, stores.NATSRights) }}
}

func securedRedis(s *scene) right {
	login := stores.Login{User: "app", Password: "a-password-that-nobody-tells"}
	grant := func() error { return s.store.RedisUser(s.context(), login, stores.RedisCandidate...) }
	s.must(grant(), "making a user")
	return right{login, login.In(s.store.URL),
		func() error { return s.store.RedisDo(s.context(), "ACL", "SETUSER", login.User, "nocommands") }, grant}
}
