package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

// recordFaults change the record behind everybody's back.
var recordFaults = append([]Fault{
	{Name: "record: deleted", on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		return r.remove(ctx)
	}},
	{Name: "record: rolled back", on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		// Any state of this election, that of a moment ago or one of the
		// beginning. There is one: that of the first leader.
		old := r.states[r.random.IntN(len(r.states))]
		e := history.Event{Kind: history.Restored, Token: old.leader.Token, Holder: old.leader.ID, Before: history.BootTime()}
		if err := insist(ctx, func() error { return r.place.records.Put(ctx, r.name, old.content) }); err != nil {
			return err
		}
		e.At = history.BootTime()
		r.tell(e)
		return nil
	}},
	{Name: "record: garbage", on: hasRecords, felt: true, strike: func(ctx context.Context, r *Round) error {
		e := history.Event{Kind: history.Spoiled, Before: history.BootTime()}
		if err := insist(ctx, func() error { return r.spoil(ctx, r.name) }); err != nil {
			return err
		}
		e.At = history.BootTime()
		r.tell(e)
		return errors.Join(r.last(ctx, 0.5, 2), r.remove(ctx))
	}},
}, editFaults...)

func hasRecords(p *Place) bool { return p.records != nil }

func (r *Round) remove(ctx context.Context) error {
	e := history.Event{Kind: history.Removed, Before: history.BootTime()}
	if err := insist(ctx, func() error { return r.place.records.Delete(ctx, r.name) }); err != nil {
		return fmt.Errorf("deleting the record: %w", err)
	}
	e.At = history.BootTime()
	r.tell(e)
	return nil
}

// A state is what a record was at some time.
type state struct {
	content []byte
	leader  elector.Leader
}

// remember keeps the present state of the record, to write it back some time.
// If it changes hands just then, there will be another time.
func (r *Round) remember(ctx context.Context) error {
	if r.place.records == nil {
		return nil
	}
	if r.group != nil {
		return r.group.remember(ctx)
	}
	var before, after elector.Leader
	var content []byte
	err := insist(ctx, func() (err error) {
		if before, err = r.asked.Leader(ctx); err != nil {
			return err
		}
		if content, err = r.place.records.Get(ctx, r.name); err != nil {
			return err
		}
		after, err = r.asked.Leader(ctx)
		return err
	})
	if err != nil || after.Token != before.Token || after.ID != before.ID {
		return err
	}
	r.states = append(r.states, state{content, before})
	return nil
}

// spoil makes the record one that no candidate can read. PostgreSQL and MySQL take
// nothing but rows.
func (r *Round) spoil(ctx context.Context, name string) error {
	if s := r.place.store; s != nil && s.Kind == stores.MySQL {
		return s.MySQLExec(ctx, "update elector set attempt = '' where name = '"+name+"'")
	}
	if s := r.place.store; s != nil && s.Kind == stores.Postgres {
		return runPostgres(ctx, s, "update elector set attempt = '' where name = '"+name+"'")
	}
	return r.place.records.Put(ctx, name, []byte("no record"))
}

// insist does something with the campaign's own connections until it succeeds,
// or missed: those may have been broken together with the store.
func insist(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := do()
		if err == nil || ctx.Err() != nil || errors.Is(err, errMissed) || errors.Is(err, backends.ErrForeignRecord) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond): // what it asks needs no rest, this machine does
		}
	}
}

// lookForRecord tells if a store has lost the record in its crash, as one that
// plays Google Cloud Storage may, and removes what is left of it.
func (r *Round) lookForRecord(ctx context.Context) error {
	if r.place.store.Kind != stores.GCS {
		return nil
	}
	var l elector.Leader
	err := insist(ctx, func() (err error) { l, err = r.asked.Leader(ctx); return err })
	switch {
	case errors.Is(err, backends.ErrForeignRecord):
		return r.remove(ctx)
	case err == nil && l.Token == 0:
		now := history.BootTime()
		r.tell(history.Event{Kind: history.Removed, Before: now, At: now})
	}
	return err
}
