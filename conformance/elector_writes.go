package conformance

import (
	"context"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fault"
)

// A ledger records when each write was sent, and which writes are known to be
// applied, by an answer or by a read.
type ledger struct {
	mutex  sync.Mutex
	sent   map[backends.Attempt]time.Time // for the first time
	proven map[string]time.Time           // by election: when the latest write was sent that is known to be applied
}

func newLedger() ledger {
	return ledger{sent: map[backends.Attempt]time.Time{}, proven: map[string]time.Time{}}
}

// leaves records that a write is sent now.
func (l *ledger) leaves(a backends.Attempt) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if _, again := l.sent[a]; !again {
		l.sent[a] = time.Now()
	}
}

// prove records that a write was applied, unless there was an error.
func (l *ledger) prove(name string, a backends.Attempt, err error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if sent := l.sent[a]; err == nil && sent.After(l.proven[name]) {
		l.proven[name] = sent
	}
}

// sentAt returns when a write was sent. Its t0 is earlier.
func (l *ledger) sentAt(a backends.Attempt) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.sent[a]
}

// latestOf returns when the latest write of an election was sent that is known to
// be applied. The lease's t0 is earlier.
func (l *ledger) latestOf(name string) time.Time {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.proven[name]
}

// writes records the writes of one candidate.
type writes struct {
	ledger
	name string // of the election
	wins int    // writes that would have acquired
	own  int    // writes with another attempt: all but bids and requests
}

// record is a fault that only records.
func (w *writes) record(ctx context.Context, c fault.Call, send fault.Send) (backends.Record, error) {
	if c.Op != "swap" {
		r, err := send(ctx)
		w.prove(c.Name, r.Attempt, err)
		return r, err
	}
	w.leaves(c.Next.Attempt)
	w.mutex.Lock()
	if c.Prev.Attempt.Nonce != c.Next.Attempt.Nonce {
		w.wins++
	}
	if c.Prev.Attempt != c.Next.Attempt {
		w.own++
	}
	w.mutex.Unlock()
	r, err := send(ctx)
	w.prove(c.Name, c.Next.Attempt, err)
	return r, err
}

// latest is latestOf for the election of the candidate.
func (w *writes) latest() time.Time { return w.latestOf(w.name) }

// count returns how many writes had another attempt.
func (w *writes) count() int { w.mutex.Lock(); defer w.mutex.Unlock(); return w.own }

// acquiring returns how many writes would have acquired.
func (w *writes) acquiring() int { w.mutex.Lock(); defer w.mutex.Unlock(); return w.wins }
