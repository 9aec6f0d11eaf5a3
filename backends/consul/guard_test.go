package consul

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A fakeLease is a lease with this acquisition, or why it is over.
type fakeLease struct {
	acquisition backends.Acquisition
	over        error
}

func (h fakeLease) Acquisition() (backends.Acquisition, error) { return h.acquisition, h.over }

// A guarded write succeeds in the states of the acquisition and in no other. Of
// the guard keys only the latest is kept.
func TestCommit(t *testing.T) {
	change := func(to func(*backends.Record)) func(backends.Record) backends.Record {
		return func(r backends.Record) backends.Record { to(&r); return r }
	}
	renewed := change(func(r *backends.Record) { r.Attempt.Sequence++ })
	vacant := change(func(r *backends.Record) { r.Holder = ""; r.Attempt.Sequence++ })
	acquired := change(func(r *backends.Record) { r.Holder, r.Attempt.Nonce, r.Token = "h", "m", r.Token+1 })
	for name, test := range map[string]struct {
		changes []func(backends.Record) backends.Record
		want    error
		guards  string
	}{
		"acquired":       {nil, nil, "elector/a/guard-n"},
		"renewed":        {[]func(backends.Record) backends.Record{renewed, renewed}, nil, "elector/a/guard-n"},
		"extended":       {[]func(backends.Record) backends.Record{change(func(r *backends.Record) { r.Extensions = `{"t_a":"1"}` })}, nil, "elector/a/guard-n"},
		"vacant":         {[]func(backends.Record) backends.Record{vacant}, backends.ErrStale, ""},
		"acquired anew":  {[]func(backends.Record) backends.Record{acquired}, backends.ErrStale, "elector/a/guard-m"},
		"after vacancy":  {[]func(backends.Record) backends.Record{vacant, acquired}, backends.ErrStale, "elector/a/guard-m"},
		"vacant, edited": {[]func(backends.Record) backends.Record{vacant, change(func(r *backends.Record) { r.Extensions = `{"t_a":"1"}` })}, backends.ErrStale, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			b := f.backend()
			f.set("elector/a/mark", []byte("of the user"))
			f.set("elector/ab/guard-o", nil)
			first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
			if err != nil {
				t.Fatal(err)
			}
			for last := first; len(test.changes) > 0; test.changes = test.changes[1:] {
				if last, err = b.Swap(t.Context(), "a", last, test.changes[0](last)); err != nil {
					t.Fatal(err)
				}
			}
			lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
			results, err := Commit(t.Context(), lease, Operation{Verb: "set", Key: "mark", Value: []byte("1")})
			if !errors.Is(err, test.want) || f.pairs["mark"].ModifyIndex > 0 != (test.want == nil) {
				t.Errorf("got %+v and %v, want %v; the key is %+v", results, err, test.want, f.pairs["mark"])
			}
			if err == nil && (len(results) != 1 || results[0].Key != "mark" || results[0].ModifyIndex != f.index) {
				t.Errorf("got the results %+v", results)
			}
			var guards []string
			for key := range f.pairs {
				if strings.Contains(key, "guard") {
					guards = append(guards, key)
				}
			}
			if strings.Join(guards, " ") != test.guards || f.pairs["elector/a/mark"].Key == "" {
				t.Errorf("the keys of guards are %q, want %q; the user's is %q", guards, test.guards, f.pairs["elector/a/mark"].Key)
			}
		})
	}
}

// What Consul refuses for another reason than the guard.
func TestCommitRefused(t *testing.T) {
	missing, denied := refused{0, `key "elector/a/guard-n" doesn't exist`}, refused{1, `Permission denied: token lacks permission 'key:write' on "mark"`}
	stale := refused{2, `failed to set key "mark", index is stale`}
	for name, test := range map[string]struct {
		refused []refused
		want    error
		place   int
	}{
		"stale, and more": {[]refused{missing, stale}, backends.ErrStale, -1},
		"denied":          {[]refused{denied}, backends.ErrDenied, -1},
		"an operation":    {[]refused{stale}, nil, 1},
		"not the guard":   {[]refused{{1, `key "other" doesn't exist`}}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.instead("/v1/txn", refusingOperations(test.refused...))
			lease := fakeLease{acquisition: backends.Acquisition{Backend: f.backend(), Election: "a", Record: record}}
			_, err := Commit(t.Context(), lease, Operation{Verb: "set", Key: "mark"})
			of, ok := as[*RefusedError](err)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || ok != (test.place >= 0) || ok && of.Operation != test.place || !strings.Contains(err.Error(), "election a on consul://h") {
				t.Errorf("got %v", err)
			}
			if errors.Is(err, backends.ErrStale) != (test.want == backends.ErrStale) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A lease that is over, or of another store, makes no request.
func TestGuardRefuses(t *testing.T) {
	over, elsewhere := errors.New("it is over"), memory.New()
	defer elsewhere.Close()
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
			_, commit := Commit(context.Background(), test.fakeLease)
			for _, err := range []error{guard, commit} {
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
					t.Errorf("got %v, want %v with %q", err, test.want, test.text)
				}
			}
		})
	}
}

// The operation is written as Consul reads it.
func TestGuard(t *testing.T) {
	o, err := Guard(fakeLease{acquisition: backends.Acquisition{Backend: newFake().backend(), Election: "a", Record: record}})
	text, _ := json.Marshal(o)
	if err != nil || string(text) != `{"Verb":"get","Key":"elector/a/guard-n"}` {
		t.Errorf("got %s, %v", text, err)
	}
}
