package partition

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

// A drained member hands over what it owns, stays out of later plans, and comes back when
// it is undrained. One that has left is forgotten.
func TestDrainMember(t *testing.T) {
	withFleet(t, 12, func(f *fleet) {
		looker, err := New(f.store.Handle(), "orders", &Options{Elector: elector.Options{Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		defer looker.Close()
		invalid := func(what, text string, err error) {
			t.Helper()
			if !errors.Is(err, elector.ErrInvalid) || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", what, err)
			}
		}
		invalid("no group", "no plan orders.plan", looker.DrainMember(f.Context(), "a"))
		invalid("Run without a number", "only looks", looker.Run(f.Context(), func(ctx context.Context, l *Lease) error { return nil }))
		a := f.join("a", nil)
		f.settles(time.Minute, "a")
		b := f.join("b", nil)
		f.settles(time.Minute, "a", "b")
		invalid("a stranger", `no member "x"; its members are ["a" "b"]`, looker.DrainMember(f.Context(), "x"))
		if err := looker.DrainMember(f.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		f.settles(time.Minute, "a")
		invalid("the last one", "no other member", looker.DrainMember(f.Context(), "a"))
		c := f.join("c", nil)
		f.settles(time.Minute, "a", "c")
		if members, err := looker.Members(f.Context()); err != nil || len(members) != 3 || !members[1].Drained || members[0].Drained || members[1].Planned != 0 {
			t.Errorf("members: %+v, %v", members, err)
		}
		owners, err := looker.Owners(f.Context())
		if err != nil || len(owners) != 12 || owners[0].ID != owners[0].Planned || owners[0].ID == "b" {
			t.Errorf("owners: %+v, %v", owners, err)
		}
		for range 2 {
			if err := looker.UndrainMember(f.Context(), "b"); err != nil {
				t.Error(err)
			}
		}
		f.settles(time.Minute, "a", "b", "c")
		if err := looker.DrainMember(f.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		f.settles(time.Minute, "a", "c")
		f.ends(b)
		d := f.join("d", nil)
		f.settles(time.Minute, "a", "c", "d")
		b = f.join("b", nil) // another process with the name of the one that has left
		f.settles(time.Minute, "a", "b", "c", "d")
		f.ends(a, b, c, d)
	})
}
