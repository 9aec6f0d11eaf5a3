package stores

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/testca"
)

// A leader keeps its lease while all that it signs in with is rotated: the server's
// certificate and its authority, its own certificate and key, and its password. Each time its
// connections end, so that it needs new ones.
func TestPostgresRotates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s, err := StartLocal(ctx, Postgres)
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	r := &rotation{T: t, store: s, server: s.server.(*server), ours: t.TempDir()}
	r.admin, err = postgresConnect(ctx, s.Address, postgresSecured)
	must(t, err)
	defer r.admin.Close(context.Background())
	r.exec("grant create on schema public to " + s.User.User)

	before := testca.New(t)
	r.serves(before, before)
	must(t, os.WriteFile(filepath.Join(postgresData(r.server), "pg_hba.conf"), []byte(`
hostnossl all `+postgresAdmin+` 127.0.0.1/32 trust
hostssl all `+s.User.User+` 127.0.0.1/32 scram-sha-256 clientcert=verify-ca
`), 0o600))
	for setting, value := range map[string]string{"ssl": "on", "ssl_cert_file": r.theirs("cert.pem"), "ssl_key_file": r.theirs("key.pem"), "ssl_ca_file": r.theirs("ca.pem")} {
		r.exec("alter system set " + setting + " = '" + value + "'")
	}
	r.reload()
	r.trusts(before)
	r.shows(before)
	r.password(s.User.Password)

	e, err := elector.Open(ctx, "postgres://"+s.User.User+"@"+s.Address+"/"+postgresSecured+"?"+url.Values{
		"sslmode": {"verify-full"}, "sslrootcert": {r.file("root.pem")}, "sslcert": {r.file("cert.pem")}, "sslkey": {r.file("key.pem")}, "passfile": {r.file("pass")},
	}.Encode(), "rotates", &elector.Options{TTL: 2 * time.Minute, RenewEvery: time.Second, RequestTimeout: time.Second})
	must(t, err)
	defer e.Close()
	l, err := e.Campaign(ctx)
	must(t, err)
	renewed := func(after string) {
		t.Helper()
		r.exec("select pg_terminate_backend(pid) from pg_stat_activity where usename = '" + s.User.User + "'")
		for last, renewals := l.Remaining(), 0; renewals < 2; time.Sleep(time.Millisecond) {
			now := l.Remaining()
			if now > last {
				renewals++
			}
			if last = now; l.Check() != nil || ctx.Err() != nil {
				t.Fatalf("after the rotation of %s: %v, %v left, %v", after, l.Check(), now, ctx.Err())
			}
		}
	}
	renewed("nothing")

	after := testca.New(t)
	r.trusts(before, after)
	r.serves(after, before)
	r.reload()
	renewed("the server's certificate")
	r.serves(after, after)
	r.shows(after)
	r.reload()
	renewed("the client's certificate")
	secret := rand.Text()
	r.exec("alter role " + s.User.User + " password '" + secret + "'")
	r.password(secret)
	renewed("the password")
	r.trusts(after)
	renewed("the authorities")
}

// A rotation has the files of a server and of its client.
type rotation struct {
	*testing.T
	store  *Store
	server *server
	admin  *pgx.Conn
	ours   string // the client's folder
}

func (r *rotation) theirs(name string) string { return filepath.Join(r.server.dir, name) }
func (r *rotation) file(name string) string   { return filepath.Join(r.ours, name) }

func (r *rotation) exec(sql string) {
	r.Helper()
	_, err := r.admin.Exec(context.Background(), sql)
	must(r, err)
}

func (r *rotation) reload() { r.Helper(); r.exec("select pg_reload_conf()") }

func (r *rotation) write(file string, content []byte) {
	r.Helper()
	must(r, os.WriteFile(file+".new", content, 0o600))
	must(r, os.Rename(file+".new", file))
}

// serves gives the server a certificate, and the authority of its clients.
func (r *rotation) serves(own, clients *testca.Authority) {
	r.Helper()
	cert, key := testca.Pair(r, own.Issue(time.Now().Add(time.Hour), "127.0.0.1"))
	for name, content := range map[string][]byte{"cert.pem": cert, "key.pem": key, "ca.pem": clients.PEM()} {
		r.write(r.theirs(name), content)
		must(r, r.server.owns(r.theirs(name)))
	}
}

// shows gives the client a certificate.
func (r *rotation) shows(by *testca.Authority) {
	r.Helper()
	cert, key := testca.Pair(r, by.Issue(time.Now().Add(time.Hour), r.store.User.User))
	r.write(r.file("cert.pem"), cert)
	r.write(r.file("key.pem"), key)
}

// trusts gives the client authorities.
func (r *rotation) trusts(all ...*testca.Authority) {
	r.Helper()
	var content []byte
	for _, a := range all {
		content = append(content, a.PEM()...)
	}
	r.write(r.file("root.pem"), content)
}

func (r *rotation) password(secret string) {
	r.Helper()
	r.write(r.file("pass"), fmt.Appendf(nil, "*:*:*:*:%s\n", secret))
}
