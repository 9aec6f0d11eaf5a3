package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/electorhttp"
)

// How often list --watch reads: each record every 2 s, or less often, so that the store
// has at most 50 reads a second; and the names every 10 s, or a tenth of the time if
// listing takes long.
const readsASecond = 50

var watchEvery, listEvery = 2 * time.Second, 10 * time.Second

// watchList prints the elections and what changes until ctx ends: on a terminal a table
// that is refreshed. A store that does not answer is tried again.
func (t *tool) watchList(ctx context.Context, records bool) error {
	b, lister, err := t.lister(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	w := &listWatch{tool: t, backend: b, lister: lister, records: records, electors: map[string]*elector.Elector{}, rows: map[string]listRow{}}
	defer w.close()
	if w.table = isTerminal(t.out) && t.output != "json" && t.output != "tsv"; !w.table {
		if w.printer, err = t.printer(append([]string{"time"}, listColumns...)...); err != nil {
			return err
		}
	}
	for {
		begun := time.Now()
		rows, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil // told to stop
		case err != nil && (!w.answered || backends.Permanent(err)):
			return err
		}
		w.answered = true
		if err := w.show(rows, err); err != nil {
			return err
		}
		pause := max(watchEvery, time.Duration(len(w.items))*time.Second/readsASecond, time.Since(begun))
		select {
		case <-time.After(pause - min(pause, time.Since(begun))):
		case <-ctx.Done():
		}
	}
}

// A listWatch is list --watch under way.
type listWatch struct {
	*tool
	backend  backends.Backend
	lister   backends.Lister
	records  bool
	table    bool     // that is refreshed
	printer  *printer // of changes, without table
	items    []item
	nextList time.Time
	electors map[string]*elector.Elector // which know when a lease has lapsed
	rows     map[string]listRow          // as shown, by the names of elections

	answered, failing bool
}

func (w *listWatch) close() {
	for _, e := range w.electors {
		e.Close()
	}
}

// look reads all. After an error the rows are not complete.
func (w *listWatch) look(ctx context.Context) ([]listRow, error) {
	if begun := time.Now(); !begun.Before(w.nextList) {
		names, err := w.lister.List(ctx)
		if err != nil {
			return nil, err
		}
		w.items = itemsOf(names, !w.records, w.read)
		for _, i := range w.items {
			if w.electors[i.name] != nil {
				continue
			}
			e, err := elector.New(w.backend, i.name, &elector.Options{Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				return nil, err
			}
			w.electors[i.name] = e
		}
		w.nextList = time.Now().Add(max(listEvery, 10*time.Since(begun)))
	}
	return readAll(ctx, w.backend, w.items)
}

// read reads an election as an observer, which knows whether it has lapsed.
func (w *listWatch) read(ctx context.Context, _ backends.Backend, name string) (listRow, error) {
	l, err := w.electors[name].Leader(ctx)
	switch {
	case errors.Is(err, elector.ErrForeignRecord):
		return listRow{Election: name, State: "foreign"}, nil
	case err != nil || never(l):
		return listRow{}, err
	}
	s := electorhttp.StatusOf(name, l)
	return listRow{Election: name, State: s.State, ID: s.ID, Token: s.Token, TTL: s.TTL, Value: s.Value}, nil
}

// show prints what has changed, or the table again.
func (w *listWatch) show(rows []listRow, failed error) error {
	now := time.Now().Format(time.RFC3339)
	next := map[string]listRow{}
	for _, r := range rows {
		if r.State != "" {
			next[r.Election] = r
		}
	}
	if failed != nil { // nothing is known of those that were not read
		for name, r := range w.rows {
			if _, read := next[name]; !read {
				next[name] = r
			}
		}
	} else {
		for name := range w.rows {
			if _, there := next[name]; !there {
				next[name] = listRow{Election: name, State: "gone"}
			}
		}
	}
	before := w.rows
	w.rows = maps.Clone(next)
	maps.DeleteFunc(w.rows, func(_ string, r listRow) bool { return r.State == "gone" })
	if w.table {
		return w.refresh(now, failed)
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		r := next[name]
		if old, there := before[name]; there && old.same(r) {
			continue
		}
		w.printer.row(struct {
			Time string `json:"time"`
			listRow
		}{now, r}, append([]any{now}, r.cells()...)...)
	}
	if failed != nil && !w.failing {
		w.say("%s: cannot read the elections, and tries again: %s", now, plain(oneLine(failed)))
	} else if failed == nil && w.failing {
		w.say("%s: reads the elections again", now)
	}
	w.failing = failed != nil
	return w.printer.flush()
}

// refresh draws the table in the place of the last one.
func (w *listWatch) refresh(now string, failed error) error {
	p, err := w.tool.printer(listColumns...)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(w.rows)) {
		p.row(nil, w.rows[name].cells()...)
	}
	fmt.Fprintf(w.out, "\x1b[H\x1b[2J%s  %s  (Ctrl-C ends it)\n\n", now, w.backend.Describe().Store)
	if failed != nil {
		fmt.Fprintf(w.out, "%s %s\n\n", w.colour(w.out, red, "not up to date:"), plain(oneLine(failed)))
	}
	return p.flush()
}

// same reports whether two rows show the same.
func (r listRow) same(o listRow) bool { return fmt.Sprint(r.cells()) == fmt.Sprint(o.cells()) }
