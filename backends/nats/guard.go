package nats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fencing"
)

// Put writes a key of the election's bucket, if the lease's acquisition is still the
// latest: see Fencing in the package comment. It uses the connection of the lease's
// election, and takes one round trip. Put returns the key's revision. Its errors are
// those of Guard, and:
//
//   - ErrStale if another candidate has acquired the election since, or the lease was
//     resigned. Nothing was written, and the worker must stop.
//   - ErrDenied if the user lacks the permission. Nothing was written.
//   - Any other error of the request. Whether something was written is unknown, or will be
//     written while the acquisition is still the latest.
//
// On a bucket with replicas the guarded writes of one election go one after the other:
// Put sends a write again that was refused only because another one was under way, or by a
// leader of the stream that was deposed. Then the value may be written twice.
func Put(ctx context.Context, lease backends.Lease, key string, value []byte) (revision uint64, err error) {
	c, err := conditionOf(lease)
	if err == nil {
		err = c.checkKey(key)
	}
	if err != nil {
		return 0, err
	}
	stale := false
	err = c.base.Do(ctx, "writing under the lease of election "+c.election+" on "+c.base.Store(), func(ctx context.Context) (err error) {
		revision, err = c.put(ctx, c.election, write{subject: c.keys() + key, of: c.subject, expected: c.seq, body: bytes.Clone(value)}) // the library may copy it later
		if stale = errors.Is(err, backends.ErrConflict); stale {
			return nil
		}
		return err
	})
	if stale {
		return 0, fmt.Errorf("writing under the lease of election %s on %s: %w: the record is no longer this lease's; nothing was written, and the worker must stop", c.election, c.base.Store(), backends.ErrStale)
	}
	return revision, err
}

// Get reads a key of the election's bucket, and its revision, which is 0 if there is no
// such key. It reflects every Put that was acknowledged before Get was called. A new
// leader reads with it what the leader before it has written. Get takes one round trip,
// two on a bucket with replicas. Its errors are those of Guard, and any other error of the
// request.
func Get(ctx context.Context, lease backends.Lease, key string) (value []byte, revision uint64, err error) {
	c, err := conditionOf(lease)
	if err == nil {
		err = c.checkKey(key)
	}
	if err != nil {
		return nil, 0, err
	}
	err = c.base.Do(ctx, "reading "+key+" under the lease of election "+c.election+" on "+c.base.Store(), func(ctx context.Context) error {
		m, err := c.latest(ctx, c.election, c.keys()+key)
		if err == nil && !m.absent() {
			value, revision = m.Data, m.Seq
		}
		return err
	})
	return value, revision, err
}

// checkKey returns an error for a key that is not for data.
func (c condition) checkKey(key string) error {
	if !plainPrefix.MatchString(key) || key == c.prefix || strings.HasPrefix(key, c.prefix+".") {
		return fmt.Errorf("%w: the key %.140q begins with the prefix of elections, or has bytes other than ASCII letters, digits, '-', '_' and '.'", backends.ErrMisconfigured, key)
	}
	return nil
}

// Guard returns the headers that make the bucket's stream refuse a message unless the
// lease's acquisition is still the latest, for a message of your own to a subject of that
// stream. Renewals do not affect them. The server refuses a stale one with the error
// code 10071; 10164 means that another write is under way: send it again.
//
// Guard makes no request. It returns the lease's error if that is over, and
// ErrMisconfigured if its election is not on NATS.
func Guard(lease backends.Lease) (natsgo.Header, error) {
	c, err := conditionOf(lease)
	if err != nil {
		return nil, err
	}
	return c.Backend.condition(c.subject, c.seq), nil
}

// A condition is a subject whose latest message has the sequence as long as a lease's
// acquisition is the latest. An acquisition writes that subject under another condition, so
// the guard rests on the server's check of what is in flight: it refuses a message whose
// condition names a subject with an undecided write. See least.
type condition struct {
	*Backend
	election, subject string
	seq               uint64
}

func conditionOf(lease backends.Lease) (condition, error) {
	a, b, err := fencing.Acquisition[*Backend](lease, "NATS")
	if err != nil {
		return condition{}, err
	}
	s, ok := parseState(a.Record.Version)
	if !ok || s.term == 0 {
		return condition{}, fmt.Errorf("%w: the record of election %s was edited by hand, so its writes cannot be guarded until the next acquisition", backends.ErrStale, a.Election)
	}
	return condition{b, a.Election, b.subject(a.Election) + "." + s.life + leafTerm, s.term}, nil
}
