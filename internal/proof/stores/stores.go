// Package stores starts real stores for tests: servers that listen on
// 127.0.0.1 on free ports, keep their data in temporary folders, and end with
// the test that started them, even if that is killed.
//
// [Start] tries in order: an address from the environment, Docker, and a local
// process of a program that is on the machine or that make stores has fetched.
// It never skips: a store that cannot be had is an error that says what was
// tried and what to do.
//
// The clouds' stores are played by programs: DynamoDB by dynalite, Google Cloud
// Storage by fake-gcs-server, Azure Blob Storage by azurite.
//
// It works on Linux and macOS; make stores gets ZooKeeper on Debian only.
package stores

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// A Store is a running store. Its methods are for one goroutine at a time.
type Store struct {
	Kind    string // one of the constants
	How     string // where it comes from, for the test's log
	URL     string // for elector.Open; no password, unless it came with one from the environment; it may have a query
	Address string // host:port; the kind, for a cloud's own store
	PID     int    // of the server's first process; 0 if it is not ours; another one after Restart

	// Settings say, for people, how a store of StartDurable is set. Empty for
	// one of Start, which is set to be quick and not to be durable.
	Settings string

	// Admin may do everything. Its password is empty when none is needed, and
	// both are when the store came from the environment.
	Admin Login

	// User has to give a password and may do little: see EtcdWithAuth, and
	// PasswordURL for PostgreSQL. Empty on other stores.
	User Login

	// PasswordURL is the same server without user and password, at the place
	// that demands them. Put a Login in with [Login.In]. Empty where no
	// password is ever demanded.
	PasswordURL string

	server runner // nil if it is not ours
	behind *Store // the one itself, of one that Plainly has returned
}

// A runner runs the server behind a Store: as a process of this machine, see
// [server], or in another way.
type runner interface {
	stop() error
	pause() error
	resume() error
	kill() error
	restart(ctx context.Context) error
	process() int // what Store.PID says
}

// A Login is a user of a store. It prints without its password.
type Login struct{ User, Password string }

// In returns rawURL with the login in it. It panics if rawURL is not a URL.
func (l Login) In(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		panic("stores: Login.In was given something that is not a URL")
	}
	u.User = url.UserPassword(l.User, l.Password)
	return u.String()
}

func (l Login) String() string { return l.User }

// GoString keeps the password out of %#v too.
func (l Login) GoString() string { return fmt.Sprintf("stores.Login{User:%q}", l.User) }

// Through returns URL with another address in it, a proxy's say.
func (s *Store) Through(address string) string {
	return strings.NewReplacer(s.Address, address, url.QueryEscape(s.Address), url.QueryEscape(address)).Replace(s.URL)
}

func (s *Store) String() string {
	return fmt.Sprintf("%s at %s: %s", s.Kind, s.Address, s.How)
}

// Stop ends the server at once and removes its data. It returns an error, with
// the end of its log, if the server had died without being told to; the data
// is removed all the same. A store from the environment is left alone, and so
// is one that was stopped before.
func (s *Store) Stop() error {
	if s.server == nil {
		return nil
	}
	return s.server.stop()
}

// Pause stops the server's processes with SIGSTOP and returns when all of them
// stand: connections stay open and nothing answers. PostgreSQL's are all
// included, those of open connections too.
func (s *Store) Pause() error {
	if s.server == nil {
		return s.notOurs("pause")
	}
	return s.server.pause()
}

// Continue lets a paused server go on.
func (s *Store) Continue() error {
	if s.server == nil {
		return s.notOurs("continue")
	}
	return s.server.resume()
}

// Kill ends all of the server's processes with SIGKILL, as a crash of the
// machine would but for what its disk has: that stays. It returns when they
// are gone. On GCS, an object whose overwriting was under way may be lost: see
// startGCS. On AzureBlob it uses SIGTERM, and a write that is under way may be lost:
// see startAzureBlob.
func (s *Store) Kill() error {
	if s.server == nil {
		return s.notOurs("kill")
	}
	return s.server.kill()
}

// Restart starts the server again on the same port and data, after ending it
// in order if it runs, and blocks until it answers. ctx bounds the start.
func (s *Store) Restart(ctx context.Context) error {
	if s.server == nil {
		return s.notOurs("restart")
	}
	if err := s.server.restart(ctx); err != nil {
		return err
	}
	s.PID = s.server.process()
	return nil
}

func (s *Store) notOurs(verb string) error {
	return fmt.Errorf("cannot %s %s: this package did not start it; unset %s to test with faults", verb, s, variables[s.Kind])
}
