package peers

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// The lock has to compare as the API server does, or client-go would be made
// worse than it is.
func TestLock(t *testing.T) {
	ctx, store := t.Context(), memory.New()
	one := &lock{backend: store, name: "n", id: "one", ttl: 3 * time.Second}
	two := &lock{backend: store, name: "n", id: "two", ttl: 3 * time.Second, timeout: time.Minute}
	record := func(id string, transitions int) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: id, LeaseDurationSeconds: 3, LeaderTransitions: transitions}
	}
	if _, _, err := one.Get(ctx); !apierrors.IsNotFound(err) {
		t.Errorf("reading what was never written: %v; want not found", err)
	}
	if err := one.Update(ctx, record("one", 0)); err == nil {
		t.Error("an update without a read works")
	}
	if err := one.Create(ctx, record("one", 0)); err != nil {
		t.Fatal(err)
	}
	if err := two.Create(ctx, record("two", 0)); !apierrors.IsConflict(err) {
		t.Errorf("creating what is there: %v; want a conflict", err)
	}
	is, raw, err := two.Get(ctx)
	if err != nil || is.HolderIdentity != "one" || len(raw) == 0 {
		t.Fatalf("read %+v, error %v", is, err)
	}
	// What one writes now, two has not seen.
	if err := one.Update(ctx, record("one", 0)); err != nil {
		t.Fatal(err)
	}
	if err := two.Update(ctx, record("two", 1)); !apierrors.IsConflict(err) {
		t.Errorf("updating on an old read: %v; want a conflict", err)
	}
	if _, again, err := two.Get(ctx); err != nil || string(again) != string(raw) {
		t.Errorf("equal records are read as %s and %s, error %v", raw, again, err)
	}
	if err := two.Update(ctx, record("two", 1)); err != nil {
		t.Fatal(err)
	}
	// A release, as client-go writes it.
	if err := two.Update(ctx, record("", 1)); err != nil {
		t.Fatal(err)
	}
	if is, _, err := one.Get(ctx); err != nil || is.HolderIdentity != "" || is.LeaderTransitions != 1 {
		t.Errorf("read %+v, error %v; want a release", is, err)
	}
}

func TestLibraries(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range All() {
		key := l.Name + " on " + l.Store
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if l.Belief == "" || l.Settings == "" || l.Open == nil || l.Slowest(3*time.Second) <= 0 || l.Slowest(3*time.Second) > 3*time.Second {
			t.Errorf("%s lacks something", key)
		}
		if l.Ours() != (l.Name == "elector") {
			t.Errorf("%s: ours is %v", key, l.Ours())
		}
	}
}
