package backends

import (
	"context"
	"slices"
	"time"
)

// A Version is a backend's own name for one state of a record: what its
// compare-and-swap compares. It is opaque to all other code. The empty Version
// means that the record was never written, or was deleted.
//
// A Version means the same through every handle on the store. It is never used
// again for another state, not even after the record was deleted and created
// anew.
type Version string

// An Attempt names one write of a holder. Each write has a new Attempt, so that a
// writer whose answer was lost recognises its own write when it reads the record
// back. A process that changes an extension of another's record leaves the
// Attempt as it is.
type Attempt struct {
	Nonce    string // of the acquisition: random, the same for all its writes
	Sequence uint64 // number of the write within the acquisition, from 1
}

// A Record is what a store keeps for one election. The zero Record stands for a
// record that was never written.
type Record struct {
	Holder     string        // identity of the leader; empty when vacant
	Token      uint64        // fencing token of the latest acquisition
	TTL        time.Duration // how long the holder may be silent
	RenewEvery time.Duration // how often the holder renews
	Attempt    Attempt       // the write that made this state
	Value      string        // published by the holder: its address, for example
	Extensions Extensions    // added by other versions and other processes

	// Version is set by the backend on each record that it returns. It is the
	// only field that is not stored.
	Version Version
}

// Exists reports whether the record was found in the store.
func (r Record) Exists() bool { return r.Version != "" }

// Vacant reports whether the record names no holder.
func (r Record) Vacant() bool { return r.Holder == "" }

// A Backend keeps one Record per election and changes it only by
// compare-and-swap. Many goroutines may call its methods at the same time, for
// the same name too.
//
// Every call returns when its context ends; the elector does not wait for a call
// that does not. A backend switches off its client library's retries of writes:
// a retried conditional write can fail because its own first try succeeded.
//
// Errors wrap the client library's own error, and one of this package's where
// it applies. No error contains a password.
type Backend interface {
	// Load returns the record as a linearizable read finds it: it reflects
	// every Swap that was acknowledged before Load was called, through any
	// handle on the store. A record that does not exist is the zero Record
	// and no error. Content that is not a valid record (see Validate) is
	// ErrForeignRecord.
	Load(ctx context.Context, name string) (Record, error)

	// Swap replaces the record by next if and only if its present Version is
	// prev.Version, in one atomic step. An empty prev.Version means that the
	// record must not exist. Swap returns next with its new Version; the
	// Version is new even if only an extension or the attempt differs.
	// When Swap returns without error, the write has reached the durability
	// that the store offers, and every later Load sees it.
	//
	// ErrConflict means that the store holds another version. After any other
	// error the outcome is unknown: the write may have been applied, may be
	// applied later, or never. Never guess; the elector reads back.
	Swap(ctx context.Context, name string, prev, next Record) (Record, error)

	// Describe describes the backend. It is cheap and does no I/O.
	Describe() Description

	// Close ends the connections and goroutines that the backend started.
	// Calls under way may fail. A second Close does nothing.
	Close() error
}

// A Description is what the elector needs to know about a backend.
type Description struct {
	// Store names the store in errors and logs, usually by its URL without
	// the password: see Redact.
	Store string

	// MinTTL is the shortest TTL that the backend allows, 0 for any.
	MinTTL time.Duration

	// MinWriteInterval is the least time between two writes of one record, 0
	// for any. It is enforced per process, not across processes.
	MinWriteInterval time.Duration

	// MaxSwaps is the largest number of swaps that a BatchSwapper takes at once,
	// 100 for example. With 0 its SwapMany is switched off: the elector does not call it.
	MaxSwaps int

	// MaxLoads is the largest number of names that a BatchLoader takes at once.
	MaxLoads int

	// PushesRenewals is set if Watch reports every change, renewals included,
	// so that no process polls while a Watch runs. Otherwise Watch is a hint
	// of new leaders, values, extensions and vacancies, and a waiter also
	// reads about once in each renewal interval.
	PushesRenewals bool

	// ReadOnly is set if the handle was opened for reading alone: every Swap is
	// ErrReadOnly, and nothing is created. See [OpenReadOnly].
	ReadOnly bool

	// Lossy says why the store may lose acknowledged writes, for people; it is empty
	// for a store that keeps them. Two processes can then lead at once, and tokens
	// need not grow: each lease says so, and guards refuse.
	Lossy string

	// NoWatch is set if the Watch of this Watcher is switched off and returns
	// an error. The elector does not call it, and finds changes by reading.
	NoWatch bool
}

// Writable returns ErrReadOnly, with what to do, if the handle was opened for reading alone.
func (d Description) Writable() error {
	if d.ReadOnly {
		return errReadOnlyHandle
	}
	return nil
}

// A Watcher is a Backend whose store can report changes.
type Watcher interface {
	Backend

	// Watch first subscribes to the record, then reads it and calls changed
	// with what it found, so that no change between the two is lost. After
	// each change it calls changed with a newer state. Watch may skip and
	// repeat states, but it never misses the last one. changed never blocks;
	// one goroutine at a time calls it.
	//
	// Watch blocks until ctx ends or it can no longer promise this: the
	// connection was lost, history was compacted, the content is foreign. It
	// then returns the reason at once. It does not reconnect: the elector
	// calls it again, after a pause. Watch leaves nothing behind when it
	// returns; many Watches on one Backend share one connection.
	Watch(ctx context.Context, name string, changed func(Record)) error
}

// AsWatcher returns b as a Watcher, and whether it is one whose Watch is not
// switched off.
func AsWatcher(b Backend) (Watcher, bool) {
	w, ok := b.(Watcher)
	return w, ok && !b.Describe().NoWatch
}

// A SameWriter is a Backend that can tell two versions of one write from two writes of the
// same content. A process that changes what the store keeps beside a record, a label for
// example, gives the record a new Version. Without a SameWriter the elector takes that for
// a restored record: another leader may have come and gone in between.
type SameWriter interface {
	Backend

	// SameWrite reports whether the record of two versions, with the same content, was
	// certainly not changed in between: if no process wrote other content. If it may
	// have been, SameWrite returns false. It does no I/O.
	SameWrite(before, after Version) bool
}

// A PresenceWatcher is a Watcher whose store shows, besides the record, that a
// holder is present: by a mark that the holder's session keeps alive, such as an
// ephemeral node. The Swap that acquires makes the mark, and the Swap that
// vacates or takes over removes it. The mark shows operators who leads, and
// removing it deposes the holder immediately. It is never evidence that a holder
// is gone, nor that a holder may continue.
type PresenceWatcher interface {
	Watcher

	// WatchPresence blocks, until ctx ends, while the store shows the mark of
	// the acquisition that made held through this Backend. It returns
	// ErrDeposed when the mark is certainly gone, and any other error at the
	// first problem; the elector then calls it again, after a pause.
	// WatchPresence leaves nothing behind when it returns.
	//
	// A Swap that renews a record whose mark is gone also returns ErrDeposed,
	// and changes nothing.
	WatchPresence(ctx context.Context, name string, held Record) error
}

// A Change is what a Swap does: an acquisition, which may create the record, a
// renewal, a release, or another extension.
type Change struct {
	Name       string // of the election
	Prev, Next Record
}

// An Outcome is the result of one Change, or of one read, in a request for many:
// what Swap or Load would return.
type Outcome struct {
	Record Record
	Err    error
}

// Outcomes returns the same error as the Outcome of each of n swaps or reads.
func Outcomes(n int, err error) []Outcome { return slices.Repeat([]Outcome{{Err: err}}, n) }

// A BatchSwapper is a Backend that can make many swaps in one request. The
// elector uses SwapMany when one process has many elections on one Backend
// value, which must be comparable. A type that embeds a BatchSwapper and has its own
// Swap also needs its own SwapMany: a swap goes by either. A BatchSwapper has no
// MinWriteInterval, because a Swap may follow a SwapMany at once.
type BatchSwapper interface {
	Backend

	// SwapMany makes the changes, each of another election and at most
	// Description.MaxSwaps, and returns the Outcome of each, in their order.
	// Each change is applied if and only if the present Version of its
	// record is Prev.Version, where the empty Version means that the record must
	// not exist. It does not depend on the others, and is acknowledged as by Swap.
	//
	// If the store applies all or nothing, or skips a record that it would
	// have to wait for, the Outcome of each change that was certainly not
	// applied is ErrNotTried; the elector then makes it by a Swap. ErrNotTried
	// is also correct in place of the reason why one was refused, and for a change
	// that the store cannot make together with others. If the outcome of the whole
	// request is unknown, it is unknown for each.
	SwapMany(ctx context.Context, changes []Change) []Outcome
}

// A BatchLoader is a Backend that can read many records in one request. Where Watch
// does not report renewals, waiters and observers read again and again; the elector
// uses LoadMany when one process has several of them on one Backend value, which
// must be comparable, and for campaigns that begin together. Package partition uses it
// on every store. A type that embeds a BatchLoader and has its own Load also needs
// its own LoadMany: a record is read by either.
type BatchLoader interface {
	Backend

	// LoadMany reads the records of at most Description.MaxLoads names, which
	// may repeat, and returns the Outcome of each, in their order. Each is what
	// Load would return: it reflects every Swap that was acknowledged before
	// LoadMany was called, and a foreign record is an error for its name alone.
	// A name that the store did not get to is an error too, never the zero
	// Record: that means that the election has no leader.
	//
	// The Outcome of a name that must be read by itself is ErrNotTried; the
	// elector then calls Load. After any other error it waits before it reads
	// again.
	LoadMany(ctx context.Context, names []string) []Outcome
}

// A Lister is a Backend that can name its elections. List is for operators; the
// elector does not call it.
type Lister interface {
	Backend

	// List returns the names of the elections that have a record, in order. It
	// reflects every Swap that was acknowledged before List was called, through
	// any handle on the store. List does not read the records, so the record of
	// a name may be foreign. It blocks for as long as the store needs to go
	// through all records.
	List(ctx context.Context) ([]string, error)
}

// An Inspector is a Backend that can look for what Open does not refuse and what
// stops elections, or breaks their promises, later: a quota that is nearly used
// up, writes that are not synced. Inspect is for operators; the elector does not
// call it.
type Inspector interface {
	Backend

	// Inspect looks at the store, for elections with the TTL. It changes
	// nothing, and needs no permission that an elector does not need: it leaves
	// out what it may not see.
	Inspect(ctx context.Context, ttl time.Duration) (Inspection, error)
}

// An Inspection is the result of Inspect.
type Inspection struct {
	Findings []Finding
	Clock    time.Time // of the store, while Inspect ran; zero if it shows none
}

// A Finding is one thing that Inspect has looked at.
type Finding struct {
	What string // was looked at, in a few words, such as "quota"
	Seen string // what it is, such as "120 MB of 2 GB are used"
	Fix  string // what to do about it; empty if nothing is wrong
	Err  error  // what kind of error it is, such as ErrMisconfigured; nil if the fix can wait
}
