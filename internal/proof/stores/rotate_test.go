package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// rotates changes a password three times, in its file and in a URL that a file has, and then
// revokes it. change gives the user of a URL without a login another password, and ends the
// connections that the one before has opened, soon.
func rotates(t *testing.T, address string, login Login, change func(Login)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	file, urlFile := filepath.Join(dir, "password"), filepath.Join(dir, "url")
	write := func() {
		must(t, os.WriteFile(file, []byte(login.Password+"\n"), 0o600))
		must(t, os.WriteFile(urlFile, []byte(login.In(address)+"\n"), 0o600))
	}
	write()
	u, err := url.Parse(address)
	must(t, err)
	u.User = url.User(login.User)
	query := u.Query()
	query.Set("password_file", file)
	u.RawQuery = query.Encode()
	byFile, err := backends.Open(ctx, u.String())
	must(t, err)
	t.Cleanup(func() { must(t, byFile.Close()) })
	byURL, err := backends.OpenFrom(ctx, func() (string, error) {
		content, err := os.ReadFile(urlFile)
		return string(content), err
	})
	must(t, err)
	t.Cleanup(func() { must(t, byURL.Close()) })

	until := func(b backends.Backend, want error) {
		t.Helper()
		for {
			request, cancel := context.WithTimeout(ctx, time.Second) // its answer may be lost with a connection
			_, err := b.Load(request, "x")
			cancel()
			if errors.Is(err, want) {
				return
			}
			if ctx.Err() != nil || err != nil && !errors.Is(err, backends.ErrUnavailable) { // not a connection that has ended
				t.Fatalf("%v, want %v", err, want)
			}
		}
	}
	for range 3 {
		login.Password = rand.Text()
		change(login)
		write()
		for _, b := range []backends.Backend{byFile, byURL} {
			until(b, nil)
		}
	}
	change(Login{login.User, rand.Text()})
	for _, b := range []backends.Backend{byFile, byURL} {
		until(b, backends.ErrDenied)
	}
}
