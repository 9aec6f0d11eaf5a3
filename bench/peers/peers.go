// Package peers drives libraries that elect a leader or hold a lock, this one
// among them, through one small interface, so that they can be measured side by
// side on the same store.
package peers

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

// A Config is what a candidate is told.
type Config struct {
	Name    string        // of the election: small letters, digits and underscores, new for each measurement
	ID      string        // of the candidate
	URL     string        // of the store, as for elector.Open; a proxy's address may be in it
	Address string        // the same store's host:port
	TTL     time.Duration // in whole seconds: some libraries count in them
}

// A Candidate is one process's part in one election. Campaign comes first, and
// once. Leads may be called at any time.
type Candidate interface {
	// Campaign blocks until the candidate leads or ctx ends. Libraries whose
	// waiting cannot be interrupted go on in the background.
	Campaign(ctx context.Context) error

	// Leads says what the library, in the way that its documentation tells
	// users to ask, believes now. It may block as long as the library does.
	Leads() bool

	// Renewal is a run of bytes that every request that renews has on the
	// wire, and no other request of a candidate that leads. It is known once
	// Campaign has returned.
	Renewal() []byte

	// Resign gives up leading as the library does it.
	Resign(ctx context.Context) error

	// Close ends the candidate, a campaign under way too, and its connections.
	// It blocks for a few seconds at most if the store does not answer.
	Close() error
}

// closingTime is how long Close waits for a library that tells the store.
const closingTime = 5 * time.Second

// A Library is a library with settings, on a kind of store.
type Library struct {
	Name     string // what it is called here
	Module   string // its Go module
	Store    string // the kind, as in internal/proof/stores
	Belief   string // what Leads goes by
	Settings string // what is set besides the TTL, and why

	// Slowest is how late the answer to a renewal may come so that it still
	// counts, by the library's own rules and with these settings.
	Slowest func(ttl time.Duration) time.Duration

	// Remote is set if Leads is a request to the store.
	Remote bool
	// Open connects a candidate, and makes what it needs in the store.
	Open func(ctx context.Context, c Config) (Candidate, error)
}

// Ours says whether the library is this repository's.
func (l Library) Ours() bool { return l.Module == electorModule }

// Version is the version that this program was built with.
func (l Library) Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of an unknown version"
	}
	for _, m := range info.Deps {
		if m.Path == l.Module && m.Replace == nil {
			return m.Version
		}
	}
	return "as in this tree"
}

// All returns every library that can be driven: ours first on each store.
func All() []Library {
	var all []Library
	for _, on := range [][]Library{etcds, zookeepers, postgreses, dynamodbs, kuberneteses, redises, natses} {
		all = append(all, on...)
	}
	return all
}

// ourName is what this repository's library is called among the others.
const ourName = "elector"

// A Failure reports that a library could not be measured.
type Failure struct {
	Library, Store string
	Err            error
}

func (f *Failure) Error() string { return f.Library + " on " + f.Store + ": " + f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// Besides returns what of an error is not the failure of other libraries than
// ours, nil if nothing is.
func Besides(err error) error {
	switch e := err.(type) {
	case nil:
		return nil
	case *Failure:
		if e.Library != ourName {
			return nil
		}
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, Besides(one))
		}
		return errors.Join(all...)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil && Besides(inner) == nil {
			return nil
		}
	}
	return err
}
