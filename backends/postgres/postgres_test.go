package postgres

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

func TestDoubts(t *testing.T) {
	var d doubts
	is := func(what, version string) {
		t.Helper()
		if got, ok := d.about("a"); string(got) != version || ok != (version != "") {
			t.Fatalf("%s: in doubt is what was to replace %q, %v; want %q", what, got, ok, version)
		}
	}
	is("at first", "")
	d.drop("a", "1")
	d.end("a", "1")
	d.add("a", "1")
	d.add("b", "1")
	is("one write", "1")
	d.add("a", "1")
	d.drop("a", "1")
	is("one of two was not applied", "1")
	d.drop("a", "1")
	is("neither was applied", "")
	d.add("a", "1")
	d.add("a", "1")
	d.drop("a", "2")
	d.end("a", "2")
	is("another version was replaced", "1")
	d.end("a", "1")
	is("the version was replaced", "")
	d.add("a", "1")
	d.add("a", "1")
	d.add("a", "2")
	is("the version was replaced, and the next is to be", "2")
	d.drop("a", "1")
	is("what cannot be applied was not", "2")
	d.drop("a", "2")
	is("the next was not replaced", "")
	if len(d.of) != 1 {
		t.Errorf("%d elections are in doubt, want b alone", len(d.of))
	}
}

func TestLockTimeout(t *testing.T) {
	for left, most := range map[time.Duration]time.Duration{0: 300 * time.Millisecond, time.Hour: 300 * time.Millisecond,
		400 * time.Millisecond: 100 * time.Millisecond, time.Millisecond: time.Millisecond, -time.Hour: time.Millisecond} {
		ctx, cancel := t.Context(), func() {}
		if left != 0 {
			ctx, cancel = context.WithTimeout(ctx, left)
		}
		got, err := time.ParseDuration(lockTimeout(ctx, 300*time.Millisecond, 4))
		cancel()
		if err != nil || got <= 0 || got > most {
			t.Errorf("with %v left a statement waits for a lock for %v, %v; want at most %v, and not for ever", left, got, err, most)
		}
	}
}

// A commit that notifies waits for others that do, but not until its request ends: the session
// would be left behind, and each that tries again would leave one more.
func TestNotifyTimeout(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	prev := check.Good()
	next := prev
	next.Attempt.Sequence++
	if wait := news(ctx, prev, next); wait != "" {
		t.Errorf("a renewal notifies, and waits for %s", wait)
	}
	next.Token++
	if wait, err := time.ParseDuration(news(ctx, prev, next)); err != nil || wait < 5*time.Second || wait > 10*time.Second {
		t.Errorf("a new term waits for %v, %v; its request has 20s", wait, err)
	}
}

// An election with a write that has had no answer is not read with others: what is
// visible may be on no standby.
func TestLoadMany(t *testing.T) {
	s, b := cannedBackend(t)
	r := check.Good()
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	s.answers([]uint32{25, 25, 23, 25, 20, 20, 20, 25, 25, 25}, [][]byte{[]byte("off"), []byte(check.Election), number(backends.Schema), []byte(r.Holder), number(int64(r.Token)),
		number(int64(r.TTL)), number(int64(r.RenewEvery)), []byte(r.Attempt.String()), []byte(r.Value), []byte(r.Extensions)})
	read := func() []backends.Outcome {
		return b.LoadMany(t.Context(), []string{"other", check.Election, check.Election})
	}
	before := read()
	if before[0] != (backends.Outcome{}) || before[1].Err != nil || before[1].Record.Holder != r.Holder || before[1] != before[2] {
		t.Fatalf("got %+v", before)
	}
	t.Run("in doubt", func(t *testing.T) {
		b.doubts.add(check.Election, before[1].Record.Version)
		for i, o := range read() {
			if i == 0 && o.Err != nil || i > 0 && (!errors.Is(o.Err, backends.ErrNotTried) || o.Record.Exists()) {
				t.Errorf("outcome %d is %+v", i, o)
			}
		}
		b.doubts.end(check.Election, before[1].Record.Version)
	})
	t.Run("another row", func(t *testing.T) {
		if o := b.LoadMany(t.Context(), []string{"other"})[0]; !errors.Is(o.Err, backends.ErrNotTried) {
			t.Errorf("a row that was not asked for: %+v", o)
		}
	})
}
