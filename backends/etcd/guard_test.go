package etcd

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A fakeLease is a lease with this acquisition, or why it is over.
type fakeLease struct {
	acquisition backends.Acquisition
	over        error
}

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return h.acquisition, h.over }

// The comparisons hold in the states of the acquisition and in no other.
func TestGuard(t *testing.T) {
	r := backends.Record{Holder: "h", Token: 5, TTL: time.Second, RenewEvery: time.Millisecond, Attempt: backends.Attempt{Nonce: "N", Sequence: 1}}
	guard, err := Guard(fakeLease{acquisition: backends.Acquisition{Backend: newBackend("etcd://h/p/", "p/"), Election: "a", Record: r}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range guard {
		if string(c.Key) != "p/a" {
			t.Errorf("it compares the key %q", c.Key)
		}
	}
	for name, test := range map[string]struct {
		change func(*backends.Record)
		want   bool
	}{
		"acquired":                     {func(*backends.Record) {}, true},
		"renewed":                      {func(r *backends.Record) { r.Attempt.Sequence = 1<<64 - 1 }, true},
		"renewed with a value":         {func(r *backends.Record) { r.Attempt.Sequence, r.Value = 2, "\U0010ffff" }, true},
		"extended":                     {func(r *backends.Record) { r.Extensions = `{"k_a":"\u0001"}` }, true},
		"vacant":                       {func(r *backends.Record) { r.Holder = "" }, false},
		"acquired anew, sorted before": {func(r *backends.Record) { r.Attempt.Nonce = "M" }, false},
		"acquired anew, sorted after":  {func(r *backends.Record) { r.Attempt.Nonce = "O" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			state := r
			test.change(&state)
			if got := hold(guard, string(backends.Encode("a", state))); got != test.want {
				t.Errorf("the comparisons hold: %v, want %v", got, test.want)
			}
		})
	}
}

// hold reports whether comparisons of a value hold for this one.
func hold(comparisons []clientv3.Cmp, value string) bool {
	return !slices.ContainsFunc(comparisons, func(c clientv3.Cmp) bool {
		wants := map[pb.Compare_CompareResult]int{pb.Compare_LESS: -1, pb.Compare_EQUAL: 0, pb.Compare_GREATER: 1}
		return cmp.Compare(value, string(c.TargetUnion.(*pb.Compare_Value).Value)) != wants[c.Result]
	})
}

// A lease that is over, or of another store, makes no request.
func TestGuardRefuses(t *testing.T) {
	over, elsewhere := errors.New("it is over"), memory.New()
	defer elsewhere.Close()
	var none struct{ clientv3.KV } // every request panics
	for name, test := range map[string]struct {
		fakeLease
		want error
		text string
	}{
		"a lease that is over":     {fakeLease{over: over}, over, "it is over"},
		"a lease of another store": {fakeLease{acquisition: backends.Acquisition{Backend: elsewhere, Election: "invoice"}}, backends.ErrMisconfigured, "election invoice is on memory:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, guard := Guard(test.fakeLease)
			_, commit := Commit(context.Background(), none, test.fakeLease)
			for _, err := range []error{guard, commit} {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %v, want %v with %q", err, test.want, test.text)
				}
			}
		})
	}
}
