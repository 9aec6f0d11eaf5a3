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
	exec := func(sql string) { t.Helper(); must(t, PostgresExec(ctx, s, sql)) }
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, content []byte) {
		t.Helper()
		must(t, os.WriteFile(file("new"), content, 0o600))
		must(t, os.Rename(file("new"), file(name)))
	}
	shows := func(by *testca.Authority) {
		t.Helper()
		cert, key := testca.Pair(by.Issue(time.Now().Add(time.Hour), s.User.User))
		write("cert.pem", cert)
		write("key.pem", key)
	}
	password := func(secret string) { t.Helper(); write("pass", fmt.Appendf(nil, "*:*:*:*:%s\n", secret)) }

	before := testca.New()
	exec("grant select, insert, update on elector to " + s.User.User)
	must(t, PostgresServes(ctx, s, before, before))
	must(t, PostgresAdmits(ctx, s, "hostssl all "+s.User.User+" 127.0.0.1/32 scram-sha-256 clientcert=verify-ca"))
	write("root.pem", before.PEM())
	shows(before)
	password(s.User.Password)

	e, err := elector.Open(ctx, "postgres://"+s.User.User+"@"+s.Address+"/"+postgresAdmin+"?"+url.Values{
		"sslmode": {"verify-full"}, "sslrootcert": {file("root.pem")}, "sslcert": {file("cert.pem")}, "sslkey": {file("key.pem")}, "passfile": {file("pass")},
	}.Encode(), "rotates", &elector.Options{TTL: 2 * time.Minute, RenewEvery: time.Second, RequestTimeout: time.Second})
	must(t, err)
	defer e.Close()
	l, err := e.Campaign(ctx)
	must(t, err)
	renewed := func(after string) {
		t.Helper()
		exec("select pg_terminate_backend(pid) from pg_stat_activity where usename = '" + s.User.User + "'")
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

	after := testca.New()
	write("root.pem", append(before.PEM(), after.PEM()...))
	must(t, PostgresServes(ctx, s, after, before))
	renewed("the server's certificate")
	must(t, PostgresServes(ctx, s, after, after))
	shows(after)
	renewed("the client's certificate")
	secret := rand.Text()
	exec("alter role " + s.User.User + " password '" + secret + "'")
	password(secret)
	renewed("the password")
	write("root.pem", after.PEM())
	renewed("the authorities")
}
