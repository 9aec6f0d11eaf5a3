package backends

import (
	"context"
	"slices"
	"time"
)

// A Version is a backend's own name for one state of a record, whatever its
// compare-and-swap compares. It is opaque to everybody else. The empty Version
// means that the record has never been written, or was deleted.
//
// A Version means the same through every handle on the store. It is never used
// again for another state, not even after the record
// was deleted and created anew.
type Version string

// An Attempt names one write of a holder. The elector gives each an Attempt that
// was never written before, so that a writer whose answer was lost recognises
// its own write when it reads the record back. Another process that changes an
// extension leaves the Attempt as it is.
type Attempt struct {
	Nonce    string // of one acquisition: random, the same for all its writes
	Sequence uint64 // of the write within the acquisition, from 1
}

// A Record is what a store keeps for one election. Its zero value stands for a
// record that was never written.
type Record struct {
	Holder     string        // identity of the leader; empty when vacant
	Token      uint64        // fencing token of the latest acquisition
	TTL        time.Duration // how long the holder may be silent
	RenewEvery time.Duration // how often the holder renews
	Attempt    Attempt       // the write that made this state
	Value      string        // published by the holder, an address say
	Extensions Extensions    // what other versions and other processes add

	// Version is set by the backend on every record that it returns. It is
	// the only field that is not stored.
	Version Version
}

// Exists reports whether the record was found in the store.
func (r Record) Exists() bool { return r.Version != "" }

// Vacant reports whether the record names no holder.
func (r Record) Vacant() bool { return r.Holder == "" }

// A Backend keeps one Record per election and changes it only by
// compare-and-swap. All methods may be called at the same time from many
// goroutines, for the same name too.
//
// Every call returns when its context ends; the elector does not wait for one
// that does not. A backend switches off whatever retries its client library
// makes for writes: a retried conditional write can fail because its own first
// try succeeded.
//
// Errors wrap the client library's own error, and one of this package's where
// it applies. No error holds a password.
type Backend interface {
	// Load returns the record as a linearizable read finds it: it reflects
	// every Swap that was acknowledged before Load was called, through any
	// handle on the store. A record that does not exist is the zero Record
	// and no error. Content that is not a valid record (see Validate) is
	// ErrForeignRecord.
	Load(ctx context.Context, name string) (Record, error)

	// Swap replaces the record by next if and only if its present Version is
	// prev.Version, in one atomic step, and returns next with its new
	// Version, also where the two differ in their extensions alone. An empty
	// prev.Version means that the record must not exist.
	// When Swap returns without error, the write has reached the durability
	// that the store offers, and every later Load sees it.
	//
	// ErrConflict means that the store holds another version. After any other
	// error the outcome is unknown: the write may have been applied, may be
	// applied later, or never. Never guess; the elector reads back.
	Swap(ctx context.Context, name string, prev, next Record) (Record, error)

	// Describe tells about the backend. It is cheap and does no I/O.
	Describe() Description

	// Close ends connections and goroutines that the backend started. Calls
	// under way may fail. A second Close does nothing.
	Close() error
}

// A Description is what the elector wants to know of a backend.
type Description struct {
	// Store names the store in errors and logs, as a URL say. Never with a
	// password: see Redact.
	Store string

	// MinTTL is the shortest TTL that the store allows, 0 for any.
	MinTTL time.Duration

	// MinWriteInterval is the least time between two writes of one record, 0
	// for any. It is enforced per process, not across processes.
	MinWriteInterval time.Duration

	// MaxBatch is the most renewals that a Batcher takes at once, 100 say.
	MaxBatch int

	// PushesRenewals: Watch reports every change, renewals
	// included, so that nobody needs to poll while a Watch runs. Without it
	// Watch is a hint of new leaders, values, extensions and vacancies, and
	// a waiter reads about once in each renewal interval besides.
	PushesRenewals bool
}

// A Watcher is a Backend whose store can tell of changes.
type Watcher interface {
	Backend

	// Watch subscribes to the record, then reads it and calls changed with
	// what it found, so that no change between the two is lost; and calls
	// changed again with a newer state after each change. States may be
	// skipped and may be repeated; the last one may not be missed while
	// Watch runs. changed never blocks, and is called by one goroutine at a
	// time.
	//
	// Watch blocks until ctx ends or it can no longer promise this: the
	// connection was lost, history was compacted, the content is foreign. It
	// then returns the reason at once. It does not reconnect: the elector
	// calls it again, after a pause. Nothing of it is left behind when it
	// has returned; many Watches on one Backend share one connection.
	Watch(ctx context.Context, name string, changed func(Record)) error
}

// A PresenceWatcher is a Watcher whose store shows that a holder is there by a
// mark that its session keeps alive, besides the record: an ephemeral node. The
// mark is made by the very Swap that acquires and removed by the one that
// vacates or takes over. It is never evidence that a holder is gone, nor that
// it may go on: its one use is that removing it deposes the holder
// immediately, and that operators see who leads.
type PresenceWatcher interface {
	Watcher

	// WatchPresence blocks while the store shows the mark of the acquisition
	// that made held, which was won through this very Backend, until ctx ends.
	// It returns ErrDeposed when the mark is gone for certain, and any other
	// error at the first trouble; the elector then calls it again, after a
	// pause. Nothing of it is left behind when it has returned.
	//
	// A Swap that renews a record whose mark is gone returns ErrDeposed too
	// and changes nothing.
	WatchPresence(ctx context.Context, name string, held Record) error
}

// A Renewal is a Swap that replaces a record by another one of the same
// acquisition: holder, token and nonce stay as they are.
type Renewal struct {
	Name       string // of the election
	Prev, Next Record
}

// An Outcome is what became of a Renewal: what Swap returns.
type Outcome struct {
	Record Record
	Err    error
}

// Outcomes returns the same error as the Outcome of each of n renewals.
func Outcomes(n int, err error) []Outcome { return slices.Repeat([]Outcome{{Err: err}}, n) }

// A Batcher is a Backend that can make many renewals in one request. The
// elector uses it when one process holds many leases through one Backend value,
// which must be comparable. A type that embeds a Batcher and has a Swap of its
// own needs a RenewMany of its own too: renewals go by the one or the other. It
// does not go together with MinWriteInterval: a Swap may follow at once.
type Batcher interface {
	Backend

	// RenewMany makes the renewals, each of another election, at most
	// Description.MaxBatch, and returns what became of each, in their order.
	// Each is applied if and only if the present Version of its record is
	// that of its Prev, whatever becomes of the others, and is acknowledged
	// as Swap acknowledges.
	//
	// Where the store applies all or nothing, or passes over what it would
	// have to wait for, the Outcome of those that were certainly not applied
	// is ErrNotTried: each is then made by a Swap. It is always right to say
	// that instead of why one was refused. When the outcome of the request as
	// a whole is unknown, that is the Outcome of each.
	RenewMany(ctx context.Context, renewals []Renewal) []Outcome
}
