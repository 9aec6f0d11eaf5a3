package nats

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A fakeLease is a lease with this acquisition, or why it is over.
type fakeLease struct {
	acquisition backends.Acquisition
	over        error
}

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return h.acquisition, h.over }

// A guarded write succeeds in the states of the acquisition and in no other.
func TestPut(t *testing.T) {
	extended := func(r backends.Record) backends.Record { r.Extensions = `{"t_a":"1"}`; return r }
	type change = func(backends.Record) backends.Record
	for name, test := range map[string]struct {
		changes []change
		want    error
	}{
		"acquired":       {nil, nil},
		"renewed":        {[]change{renewed, renewed}, nil},
		"extended":       {[]change{extended, renewed}, nil},
		"vacant":         {[]change{vacated}, backends.ErrStale},
		"acquired anew":  {[]change{acquired}, backends.ErrStale},
		"after vacancy":  {[]change{renewed, vacated, acquired}, backends.ErrStale},
		"vacant, edited": {[]change{vacated, extended}, backends.ErrStale},
		"taken over":     {[]change{renewed, acquired, renewed}, backends.ErrStale},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			b := f.backend()
			first := mustSwap(t, b, "a", backends.Record{}, record)
			last := first
			for _, to := range test.changes {
				last = mustSwap(t, b, "a", last, to(last))
			}
			f.sent()
			lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
			value := []byte("1")
			revision, err := Put(t.Context(), lease, "data.x", value)
			value[0] = '2' // the caller's again, although the library may send it later
			kept, written := f.last("$KV.b.data.x")
			if !errors.Is(err, test.want) || written != (test.want == nil) || written && (revision != kept.Seq || string(kept.Data) != "1") {
				t.Errorf("got %d and %v, want %v; the key is %+v", revision, err, test.want, kept)
			}
			if sent := f.sent(); !slices.Equal(sent, []string{"$KV.b.data.x"}) {
				t.Errorf("it took the requests %q", sent)
			}
			// A lease whose record was read back has the version of a renewal.
			if read, err := b.Load(t.Context(), "a"); err != nil || read.Version != last.Version {
				t.Fatalf("read %+v, %v; want %+v", read, err, last)
			}
			if test.want == nil {
				lease.acquisition.Record = last
				if _, err := Put(t.Context(), lease, "data.x", nil); err != nil {
					t.Errorf("with the version of the last write: %v", err)
				}
			}
		})
	}
}

func TestPutRefused(t *testing.T) {
	f := newFake()
	b := f.backend()
	first := mustSwap(t, b, "a", backends.Record{}, record)
	lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
	for _, key := range []string{"", "elector", "elector.a.x.term", "a.*", "a.>", "a b", "a..b", ".a", "a."} {
		if _, err := Put(t.Context(), lease, key, nil); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("key %q: %v", key, err)
		}
	}
	over := errors.New("over")
	if _, err := Put(t.Context(), fakeLease{over: over}, "a", nil); !errors.Is(err, over) {
		t.Errorf("a lease that is over: %v", err)
	}
	elsewhere := fakeLease{acquisition: backends.Acquisition{Backend: memory.New(), Election: "a", Record: record}}
	if _, err := Guard(elsewhere); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "NATS") {
		t.Errorf("an election on another store: %v", err)
	}
	f.keep("$KV.b.elector.a."+strings.Split(string(first.Version), ".")[0]+".renewal", nil, backends.Encode("a", record))
	edited, err := b.Load(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	lease.acquisition.Record = edited
	if _, err := Guard(lease); !errors.Is(err, backends.ErrStale) {
		t.Errorf("a record that was edited by hand: %v", err)
	}
	if sent := f.sent(); len(sent) != 2 {
		t.Errorf("what was refused took requests: %q", sent)
	}
}

// A stream with replicas refuses a write while another one to the same subjects is under
// way. That is no stale token.
func TestPutWhileAnotherIsUnderWay(t *testing.T) {
	f := newFake()
	b := f.backend()
	first := mustSwap(t, b, "a", backends.Record{}, record)
	lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
	left := 3
	f.instead("$KV.b.data", func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
		if left--; left == 0 {
			f.instead("$KV.b.data", nil)
		}
		return underWay(ctx, m)
	})
	if _, err := Put(t.Context(), lease, "data", nil); err != nil {
		t.Error(err)
	}
	f.instead("$KV.b.data", underWay)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond/2) // it ends between two requests
		defer cancel()
		if _, err := Put(ctx, lease, "data", nil); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrStale) {
			t.Errorf("until the context ended: %v", err)
		}
	})
}

func TestGuard(t *testing.T) {
	f := newFake()
	b := f.backend()
	first := mustSwap(t, b, "a", backends.Record{}, record)
	header, err := Guard(fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}})
	life, _, _ := strings.Cut(string(first.Version), ".")
	if err != nil || header.Get("Nats-Expected-Last-Subject-Sequence") != "8" || header.Get("Nats-Expected-Last-Subject-Sequence-Subject") != "$KV.b.elector.a."+life+".term" || header.Get("Nats-Expected-Stream") != "KV_b" {
		t.Errorf("got %v, %v", header, err)
	}
}

// A new leader sees what the one before it has written, as a majority confirms it.
func TestGet(t *testing.T) {
	f := newFake()
	b := f.backend()
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: mustSwap(t, b, "a", backends.Record{}, record)}}
	if value, revision, err := Get(t.Context(), lease, "data"); err != nil || value != nil || revision != 0 {
		t.Errorf("a key that is not there: %q, %d, %v", value, revision, err)
	}
	written, err := Put(t.Context(), lease, "data", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}
	f.sent()
	if value, revision, err := Get(t.Context(), lease, "data"); err != nil || string(value) != "1" || revision != written {
		t.Errorf("got %q, %d, %v", value, revision, err)
	}
	if sent := f.sent(); !slices.Equal(sent, []string{read, "$KV.b.elector.a"}) {
		t.Errorf("it took the requests %q", sent)
	}
	f.instead("$KV.b.elector.a", fails(context.DeadlineExceeded))
	if value, _, err := Get(t.Context(), lease, "data"); err == nil {
		t.Errorf("a read that no majority confirms: %q", value)
	}
	if _, _, err := Get(t.Context(), lease, "elector.a.x.term"); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("a record as data: %v", err)
	}
}

// A record that was deleted, by its one key or the other, guards no longer once the next
// leader has acquired.
func TestPutAfterDeletion(t *testing.T) {
	for _, renewals := range []int{0, 1} {
		f := newFake()
		b := f.backend()
		first := mustSwap(t, b, "a", backends.Record{}, record)
		for last := first; renewals > 0; renewals-- {
			last = mustSwap(t, b, "a", last, renewed(last))
		}
		f.deleteKey(t, "a")
		now := mustSwap(t, b, "a", backends.Record{}, acquired(record))
		lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
		if _, err := Put(t.Context(), lease, "data", nil); !errors.Is(err, backends.ErrStale) {
			t.Errorf("under the lease from before: got %v, want ErrStale", err)
		}
		lease.acquisition.Record = now
		if _, err := Put(t.Context(), lease, "data", nil); err != nil {
			t.Errorf("under the lease: %v", err)
		}
	}
}
