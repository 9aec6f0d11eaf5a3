package stores

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// secured starts an etcd whose passwords have a hash as slow as it is by default.
func secured(t *testing.T, ctx context.Context) *Store {
	t.Helper()
	s, err := etcdWithAuth(ctx, durable, "/elector/")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// forgetTokens makes the servers forget all tokens of User, as a restart does after a snapshot.
func forgetTokens(t *testing.T, ctx context.Context, s *Store) {
	t.Helper()
	root, err := etcdClient(ctx, s.Address, s.Admin)
	must(t, err)
	defer root.Close()
	_, err = root.UserChangePassword(ctx, s.User.User, s.User.Password)
	must(t, err)
}

// A sign-in that takes longer than a request goes on, and what comes after it has the token.
func TestEtcdSlowSignIn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := secured(t, ctx)
	b, err := backends.Open(ctx, s.User.In(s.PasswordURL))
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	forgetTokens(t, ctx, s)
	for tries := 1; ; tries++ {
		hasty, cancel := context.WithTimeout(ctx, 20*time.Millisecond) // the hash takes longer
		_, err := b.Load(hasty, "x")
		cancel()
		if err == nil {
			t.Logf("after %d requests", tries)
			return
		}
		if errors.Is(err, backends.ErrDenied) || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// Thirty processes sign in again together, when a server has forgotten their tokens: all get
// in, each with one sign-in or a few.
func TestEtcdSignInsTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := secured(t, ctx)
	var all []backends.Backend
	for range 30 {
		b, err := backends.Open(ctx, s.User.In(s.PasswordURL))
		must(t, err)
		t.Cleanup(func() { must(t, b.Close()) })
		all = append(all, b)
	}
	forgetTokens(t, ctx, s)
	in := make(chan error, len(all))
	start := time.Now()
	for _, b := range all {
		go func() {
			for {
				request, cancel := context.WithTimeout(ctx, time.Second)
				_, err := b.Load(request, "x")
				cancel()
				if err == nil || ctx.Err() != nil || errors.Is(err, backends.ErrDenied) {
					in <- err
					return
				}
			}
		}()
	}
	for range all {
		must(t, <-in)
	}
	t.Logf("all are in after %v", time.Since(start))
}

// The password is rotated: in its file, and in a URL that a file has.
func TestEtcdRotates(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := EtcdWithAuth(ctx, "/elector/")
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	root, err := etcdClient(ctx, s.Address, s.Admin)
	must(t, err)
	defer root.Close()
	rotates(t, s.PasswordURL, s.User, func(l Login) {
		_, err := root.UserChangePassword(ctx, l.User, l.Password)
		must(t, err)
	})
}
