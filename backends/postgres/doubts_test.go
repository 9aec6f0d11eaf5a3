package postgres

import (
	"context"
	"testing"
	"time"
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
		got, err := time.ParseDuration(lockTimeout(ctx))
		cancel()
		if err != nil || got <= 0 || got > most {
			t.Errorf("with %v left a statement waits for a lock for %v, %v; want at most %v, and not for ever", left, got, err, most)
		}
	}
}
