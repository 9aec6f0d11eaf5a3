package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/partition"
)

// watchPartitions prints what changes until ctx ends. Each second it reads the plan and the
// seats; it reads the partitions while some move, when members come or go, and otherwise
// once in a minute. A store that does not answer is tried again.
func (t *tool) watchPartitions(ctx context.Context, name string) error {
	p, err := t.printer(append([]string{"time"}, partitionColumns...)...)
	if err != nil {
		return err
	}
	g, done, err := t.group(ctx, name, t.openToLook)
	if err != nil {
		return err
	}
	defer done()
	w := watcher{tool: t, printer: p, group: g}
	for {
		begun := time.Now()
		err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // told to stop
		case w.printer.err != nil, errors.Is(err, elector.ErrForeignRecord), errors.Is(err, elector.ErrInvalid):
			return err // it cannot pass
		case err != nil && !w.answered:
			return err
		}
		w.answered = true
		w.report(err)
		select {
		case <-time.After(max(time.Second, time.Since(begun))): // at most half of the time is spent reading
		case <-ctx.Done():
		}
	}
}

// A watcher prints the partitions of a group that have changed.
type watcher struct {
	*tool
	printer *printer
	group   *partition.Group
	members []partition.Member // as they were when the partitions were read last
	shown   []partition.Owner
	read    time.Time // when that was; zero if it is to be done at once

	answered, failing bool
}

// look reads the group, and prints what has changed.
func (w *watcher) look(ctx context.Context) error {
	s, err := w.group.Assignment(ctx)
	if err != nil {
		return err
	}
	same := slices.EqualFunc(w.members, s.Members, func(a, b partition.Member) bool {
		a.Attempt.Sequence = b.Attempt.Sequence // a renewal
		return a == b
	})
	if same && time.Since(w.read) < time.Minute || s.Partitions() == 0 {
		return nil
	}
	now := time.Now()
	owners, err := w.group.Owners(ctx)
	if err != nil {
		return err
	}
	w.members, w.read = s.Members, now
	for i, o := range owners {
		if o.ID == "" || o.ID != o.Planned {
			w.read = time.Time{}
		}
		if i < len(w.shown) && looksAs(w.shown[i], o) {
			continue
		}
		r := struct {
			Time string `json:"time"`
			partitionRow
		}{now.Format(time.RFC3339), rowOf(o, w.members)}
		w.printer.row(r, append([]any{r.Time}, r.cells()...)...)
	}
	w.shown = owners
	return w.printer.flush()
}

// looksAs reports whether the rows of two owners are the same.
func looksAs(a, b partition.Owner) bool {
	a.Value = b.Value
	return a == b
}

// report prints when the store stops to answer, and when it answers again.
func (w *watcher) report(err error) {
	now := time.Now().Format(time.RFC3339)
	switch {
	case err != nil && !w.failing:
		fmt.Fprintf(w.err, "elector: %s: cannot read the group, and tries again: %s\n", now, plain(oneLine(err)))
	case err == nil && w.failing:
		fmt.Fprintf(w.err, "elector: %s: reads the group again\n", now)
	}
	w.failing = err != nil
}
