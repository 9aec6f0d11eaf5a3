package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A liar is a store that is wrong in one way.
type liar struct {
	*memory.Backend
	how   string
	store *memory.Store
	swaps atomic.Int32
	first backends.Record
	last  backends.Record // that this handle has shown
}

func (l *liar) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	n := l.swaps.Add(1)
	switch {
	case l.how == "swallows" && n > 1, l.how == "swallows-creations":
		return backends.Record{}, backends.ErrConflict
	case l.how == "twice" && n > 1:
		if _, err := l.Backend.Swap(ctx, name, prev, next); err != nil {
			return backends.Record{}, err
		}
		return l.Backend.Swap(ctx, name, prev, next)
	case l.how == "loses" && n == 3:
		l.store.Put(name, backends.Encode(name, l.first)) // the writes since
		return backends.Record{}, backends.ErrConflict
	case l.how == "another" && n > 1:
		l.intrude(name, n)
	case l.how == "ignores", l.how == "repeats":
		l.store.Put(name, backends.Encode(name, next))
		return l.Load(ctx, name)
	}
	r, err := l.Backend.Swap(ctx, name, prev, next)
	if n == 1 {
		l.first = r
	}
	if err == nil {
		l.last = r
	}
	if l.how == "another-once" && n == 5 {
		l.intrude(name, n)
	}
	if l.how == "relabels" && err == nil {
		r.Version += "'"
	}
	return r, err
}

// intrude writes the record as another process would.
func (l *liar) intrude(name string, n int32) {
	other := l.first
	other.Holder, other.Token, other.Attempt.Nonce = "intruder", other.Token+1, fmt.Sprint("intruder", n)
	l.store.Put(name, backends.Encode(name, other))
}

func (l *liar) Load(ctx context.Context, name string) (backends.Record, error) {
	r, err := l.Backend.Load(ctx, name)
	last := l.last
	if l.last = r; err == nil && last.Exists() {
		switch l.how {
		case "stays": // what it has shown once
			l.last = last
			return last, nil
		case "late", "another-once": // by one read
			return last, nil
		}
	}
	if l.how == "repeats" && r.Exists() {
		r.Version = "the same"
	}
	return r, err
}

func (l *liar) SwapMany(context.Context, []backends.Change) []backends.Outcome { panic("not used") }

var liars = map[string]*memory.Store{}

func init() {
	late["late"] = "it is slow"
	open := func(_ context.Context, u *url.URL) (backends.Backend, error) {
		key := u.Path
		if u.Query().Has("two") {
			key += u.Host
		}
		if liars[key] == nil {
			liars[key] = memory.NewStore()
		}
		return &liar{Backend: liars[key].Handle(), how: strings.Trim(u.Path, "/"), store: liars[key]}, nil
	}
	backends.Register("liar", open)
	backends.Register("late", open)
}

// Each way in which a store can be wrong has its cause and its cure, and none of them is
// taken for another process.
func TestCauses(t *testing.T) {
	for _, c := range []struct {
		url         string
		check, seen string
		fix         string
		fails       bool
	}{
		{"liar://a/honest", "compare-and-swap", "are refused", "", false},
		{"liar://a,b/honest-too", "one store", "a, b show the record", "", false},
		{"liar://a,b/apart?two=true", "one store", "are two stores", "name only hosts of one store", true},
		{"liar://a/swallows", "write", "refuses to replace the very state that it shows", "a trigger, a rule", true},
		{"liar://a/swallows-creations", "write", "refuses to replace the very state that it shows", "a trigger, a rule", true},
		{"liar://a/twice", "write", "has made it all the same", "sends writes again", true},
		{"liar://a/loses", "write", "an earlier state", "restores or deletes", true},
		{"liar://a/another", "write", `"intruder", with token`, "one doctor at a time", true},
		{"liar://a/ignores", "compare-and-swap", "accepted", "can have two leaders", true},
		{"liar://a/relabels", "compare-and-swap", "under another version", "leases are lost", true},
		{"liar://a/late", "linearizable reads", "19 of 20 reads did not show", "through no cache or replica", true},
		{"late://a/late", "linearizable reads", "19 of 20 reads did not show the write that was acknowledged before, and did when they were made again: it is slow", "", false},
		{"late://a/stays", "linearizable reads", "19 of 20 reads did not show", "through no cache or replica", true},
		{"late://a/another-once", "compare-and-swap", "are refused", "", false},
		{"liar://a/repeats", "compare-and-swap", "gave two states the version", "there can be two leaders", true},
	} {
		var lines []Line
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = Run(t.Context(), Options{URL: c.url, TTL: time.Hour}, func(l Line) { lines = append(lines, l) })
		})
		if (err != nil) != c.fails {
			t.Errorf("%s: the error is %v", c.url, err)
		}
		found := false
		for _, l := range lines {
			level := OK
			if c.fails {
				level = Fail
			}
			found = found || l.Level == level && l.Check == c.check && strings.Contains(l.Seen, c.seen) && strings.Contains(l.Fix, c.fix)
			if !strings.Contains(c.url, "another") && strings.Contains(l.Seen, "another process") {
				t.Errorf("%s is taken for another process: %+v", c.url, l)
			}
		}
		if !found {
			t.Errorf("%s: %+v", c.url, lines)
		}
		if c.fails && !errors.Is(err, backends.ErrMisconfigured) && !strings.Contains(c.url, "another") {
			t.Errorf("%s: the error is %v", c.url, err)
		}
	}
}
