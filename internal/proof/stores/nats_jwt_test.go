//go:build nats

package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/elector-go/elector/backends"
)

// natsOperator is a server's trust in an operator, with one account that has JetStream.
type natsOperator struct {
	account  nkeys.KeyPair
	settings string // of the server
}

func newNATSOperator(t *testing.T) natsOperator {
	t.Helper()
	operator, _ := natsKey(t, nkeys.CreateOperator)
	account, public := natsKey(t, nkeys.CreateAccount)
	_, system := natsKey(t, nkeys.CreateAccount)
	preload := ""
	for _, key := range []string{public, system} {
		claims := jwt.NewAccountClaims(key)
		if key == public {
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 1 << 20, Streams: 1}
		}
		text, err := claims.Encode(operator)
		must(t, err)
		preload += fmt.Sprintf("%s: %q\n", key, text)
	}
	trusted, err := operator.PublicKey()
	must(t, err)
	claims := jwt.NewOperatorClaims(trusted)
	claims.SystemAccount = system
	text, err := claims.Encode(operator)
	must(t, err)
	return natsOperator{account, fmt.Sprintf("operator: %q\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s}", text, system, preload)}
}

func natsKey(t *testing.T, create func() (nkeys.KeyPair, error)) (pair nkeys.KeyPair, public string) {
	t.Helper()
	pair, err := create()
	must(t, err)
	public, err = pair.PublicKey()
	must(t, err)
	return pair, public
}

// user returns the content of a file with credentials of a new user, signed by an account.
func (o natsOperator) user(t *testing.T, signer nkeys.KeyPair, change func(*jwt.UserClaims)) []byte {
	t.Helper()
	pair, public := natsKey(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public)
	change(claims)
	text, err := claims.Encode(signer)
	must(t, err)
	return credsFile(t, text, pair)
}

var quoted = regexp.MustCompile(`"([^"]+)"`)

// natsPermit gives a user the permissions that docs/stores/nats.md has.
func natsPermit(u *jwt.UserClaims) {
	publish, subscribe, _ := strings.Cut(NATSRights, "subscribe:")
	for _, m := range quoted.FindAllStringSubmatch(publish, -1) {
		u.Pub.Allow.Add(m[1])
	}
	for _, m := range quoted.FindAllStringSubmatch(subscribe, -1) {
		u.Sub.Allow.Add(m[1])
	}
}

// A file of credentials leads with the least permissions. The server refuses one that has
// expired, or of an unknown account; the file is read again for each connection.
func TestNATSJWT(t *testing.T) {
	o := newNATSOperator(t)
	dir := t.TempDir()
	admin, file := filepath.Join(dir, "admin.creds"), filepath.Join(dir, "nats.creds")
	must(t, os.WriteFile(admin, o.user(t, o.account, func(*jwt.UserClaims) {}), 0o600))
	s, err := startNATSWith(t.Context(), o.settings, nats.UserCredentials(admin))
	must(t, err)
	defer func() { must(t, s.Stop()) }()
	opener(s.URL + "?create=true&creds=" + admin)(t).Close()
	url := s.URL + "?creds=" + file
	write := func(content []byte) { t.Helper(); must(t, os.WriteFile(file, content, 0o600)) }

	allowed := o.user(t, o.account, natsPermit)
	write(allowed)
	for call, err := range candidateCalls(t, url) {
		if err != nil {
			t.Errorf("a candidate's %s: %v", call, err)
		}
	}
	leadOnce(t, url)
	observes(t, url, url)

	stranger, _ := natsKey(t, nkeys.CreateAccount)
	other := o.user(t, o.account, natsPermit)
	wrong := map[string][]byte{
		"expired": o.user(t, o.account, func(u *jwt.UserClaims) {
			natsPermit(u)
			u.Expires = time.Now().Add(-time.Hour).Unix()
		}),
		"an unknown account": o.user(t, stranger, natsPermit),
		"another's seed":     swapSeed(t, allowed, other),
		"a damaged JWT":      []byte(strings.Replace(string(allowed), "\neyJ", "\neyK", 1)),
	}
	for name, content := range wrong {
		write(content)
		natsRefused(t, name, openError(t, url), content, file)
	}
	write(o.user(t, o.account, func(u *jwt.UserClaims) {
		natsPermit(u)
		u.Pub.Allow.Remove("$JS.API.STREAM.INFO.KV_elections")
	}))
	if err := openError(t, url); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "publish to $JS.API.STREAM.INFO.KV_elections") {
		t.Errorf("a permission is missing: %v", err)
	}

	// Of a handle that is open: refused when it connects again, until the file is renewed.
	write(allowed)
	b := opener(url)(t)
	defer b.Close()
	write(wrong["expired"])
	must(t, s.Restart(t.Context()))
	load := func(want error) (err error) {
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		defer cancel()
		must(t, until(ctx, 2*time.Second, func(ctx context.Context) error {
			if _, err = b.Load(ctx, readElection); !errors.Is(err, want) {
				return fmt.Errorf("want %v: %w", want, err)
			}
			return nil
		}))
		return err
	}
	natsRefused(t, "expired while it was open", load(backends.ErrDenied), wrong["expired"], file)
	write(allowed)
	load(nil)
}

// natsRefused checks the error about credentials that the server has refused.
func natsRefused(t *testing.T, what string, err error, creds []byte, file string) {
	t.Helper()
	if !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "creds") || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%s: got %v, want ErrDenied with the file and what to do", what, err)
	}
	for _, m := range secrets.FindAll(creds, -1) {
		if err != nil && strings.Contains(err.Error(), string(m)) {
			t.Errorf("%s: the error has what the file %s keeps", what, file)
		}
	}
}

// credsFile returns the content of a file with a JWT and a seed.
func credsFile(t *testing.T, text string, pair nkeys.KeyPair) []byte {
	t.Helper()
	seed, err := pair.Seed()
	must(t, err)
	content, err := jwt.FormatUserConfig(text, seed)
	must(t, err)
	return content
}

// secrets are the JWT and the seed in a file of credentials.
var secrets = regexp.MustCompile(`(?m)^[A-Za-z0-9_.=-]{40,}$`)

// swapSeed returns the JWT of one file of credentials with the seed of the other.
func swapSeed(t *testing.T, creds, other []byte) []byte {
	t.Helper()
	text, err := jwt.ParseDecoratedJWT(creds)
	must(t, err)
	pair, err := jwt.ParseDecoratedUserNKey(other)
	must(t, err)
	return credsFile(t, text, pair)
}
