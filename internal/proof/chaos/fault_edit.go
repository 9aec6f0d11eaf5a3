package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
)

// editFaults change one thing in the record of a leader, and leave the rest as
// it is. Whether the holder has lost by the rules is for the checker to say.
var editFaults = []Fault{
	editFault("record: holder emptied", emptyHolder),
	editFault("record: TTL lowered", func(x *backends.Record) string {
		x.TTL = x.RenewEvery + x.RenewEvery/8 // a record with a lower one would be foreign
		return history.EditedTTL
	}),
	editFault("record: renewal interval changed", func(x *backends.Record) string {
		x.RenewEvery /= 2
		return history.EditedInterval
	}),
	editFault("record: value changed", func(x *backends.Record) string {
		x.Value = "by hand"
		return history.EditedValue
	}),
	{Name: "record: critical extension", on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		edits := []edit{r.extend("c_chaos")}
		if r.random.IntN(2) == 0 { // a vacancy is not to be claimed either
			edits = append(edits, emptyHolder)
		}
		if err := r.edit(ctx, edits...); err != nil {
			return err
		}
		if err := errors.Join(r.last(ctx, 1.3, 2.5), r.show(ctx)); err != nil {
			return err
		}
		return r.change(ctx, false, func(x *backends.Record) string {
			x.Extensions = without(x.Extensions, "c_chaos")
			return history.Extension("c_chaos", "")
		})
	}},
	extensionFault("record: kept extension", "k_chaos"),
	extensionFault("record: term extension", "t_chaos"),
}

// An edit changes something in a record and returns the Detail of its event.
type edit func(*backends.Record) (detail string)

func emptyHolder(x *backends.Record) string {
	x.Holder = ""
	return history.EditedHolder
}

func editFault(name string, do edit) Fault {
	return Fault{Name: name, on: hasRecords, strike: func(ctx context.Context, r *Round) error { return r.edit(ctx, do) }}
}

// extensionFault adds an extension, and when its leader knows of it ends the
// term.
func extensionFault(name, extension string) Fault {
	return Fault{Name: name, on: hasRecords, strike: func(ctx context.Context, r *Round) error {
		v, err := r.leader()
		if err != nil {
			return err
		}
		if err := r.edit(ctx, r.extend(extension)); err != nil {
			return err
		}
		if err := r.show(ctx); err != nil {
			return err
		}
		end := v.kill
		if r.random.IntN(2) == 0 {
			end = func() error { return v.terminate(ctx) }
		}
		return errors.Join(end(), r.show(ctx), r.start(v))
	}}
}

// extend sets an extension to a value that it never had.
func (r *Round) extend(name string) edit {
	value := fmt.Sprintf("%016x", r.random.Uint64())
	return func(x *backends.Record) string {
		extended, err := x.Extensions.With(name, value)
		if err != nil {
			panic(err) // they are few and short
		}
		x.Extensions = extended
		return history.Extension(name, value)
	}
}

// without returns the extensions without one.
func without(x backends.Extensions, name string) backends.Extensions {
	fields := map[string]string{}
	json.Unmarshal([]byte(x), &fields) // there may be none
	delete(fields, name)
	var rest backends.Extensions
	for other, value := range fields {
		rest, _ = rest.With(other, value) // fewer than were valid
	}
	return rest
}

// edit changes the record of a leader, and waits until that has lost it or has
// renewed it twice. It returns errMissed if no candidate leads just then.
func (r *Round) edit(ctx context.Context, edits ...edit) error {
	position := r.log.Position()
	if err := r.change(ctx, true, edits...); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 2*r.place.Rules.TTL)
	defer cancel()
	var last history.Event
	renewed := 0
	_, err := r.log.Wait(limited, position, "the holder of the edited record", func(e history.Event) bool {
		switch {
		case e.Kind == history.Edited:
			last = e
		case e.Kind == history.Renewed && e.Token == last.Token:
			renewed++
		}
		return renewed == 2 || e.Kind == history.Ended
	})
	if ctx.Err() == nil {
		err = nil // that it does neither is for the checker to say
	}
	return err
}

// change changes the record by hand, all at once, and tells each edit. If it is
// to be held and is not, nothing is changed, and the error is errMissed.
func (r *Round) change(ctx context.Context, held bool, edits ...edit) error {
	var told []history.Event
	before := history.BootTime()
	err := insist(ctx, func() error {
		_, err := raw.Edit(ctx, r.place.records, r.name, func(x *backends.Record) error {
			if held && x.Vacant() {
				return errMissed
			}
			told = nil
			for _, do := range edits {
				told = append(told, history.Event{Kind: history.Edited, Detail: do(x), Before: before})
			}
			for i := range told {
				if told[i].Token, told[i].Holder = elector.Token(x.Token), x.Holder; told[i].Detail == history.EditedTTL {
					told[i].Left = x.TTL
				}
			}
			return nil
		})
		return err
	})
	if errors.Is(err, errMissed) && told == nil { // or an earlier try may have changed it
		return errMissed
	}
	if err != nil && !errors.Is(err, errMissed) {
		return fmt.Errorf("editing the record: %w", err)
	}
	for _, e := range told {
		e.At = history.BootTime()
		r.tell(e)
	}
	return nil
}

// show reads the record behind everybody's back and tells what it is.
func (r *Round) show(ctx context.Context) error {
	if r.place.records == nil || r.group != nil {
		return nil
	}
	e := history.Event{Kind: history.Shown, Before: history.BootTime()}
	err := insist(ctx, func() error {
		x, err := raw.Load(ctx, r.place.records, r.name)
		e.Token, e.Holder, e.Detail = elector.Token(x.Token), x.Holder, string(x.Extensions)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the record: %w", err)
	}
	e.At = history.BootTime()
	r.tell(e)
	return nil
}
