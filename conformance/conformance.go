// Package conformance tests a backend, and the elector on top of it, against
// the guarantees of this module. It needs only the standard library, and any
// backend can run it:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, conformance.Harness{
//			Open: func(t testing.TB) backends.Backend { return mystore.New(client) },
//			Raw:  &conformance.Raw{Get: get, Put: put, Delete: remove},
//		})
//	}
//
// docs/backend.md leads from an empty folder to a green suite, and the
// documentation of package backends has the contract as a checklist.
//
// # Stages
//
// The suite has four stages. A stage begins only if the one before it passed.
//
//  1. The basic rules, on the backend alone. The first case that fails ends the
//     suite.
//  2. The other rules, on the backend alone.
//  3. The elector over the backend.
//  4. Groups of package partition over the backend.
//
// Each stage but the first ends with its second failed case. A call on the
// backend that does not return fails its case: within 20 s, or 40 s with
// [Harness.Slow]. So a backend that cannot work is rejected within a minute. The
// last lines of the output name the rule that was broken and what was not run.
//
// # Names of cases
//
// A case is a subtest. backend/mx/race is the case mx/race on the backend alone,
// elector/res/order is res/order with the elector over it. [Legend] explains the
// first part of each name.
package conformance

import (
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// Legend explains the abbreviations in the names of cases. Run logs it.
const Legend = `amb: a lost answer            auth: permissions           bad: bad records, names, set-ups
batch: shared renewals        cb: callbacks               close: Close
ctx: contexts                 exp: expiry                 grp: groups of members
leak: nothing left behind     list: List                  load: shared reads
many: scale                   misuse: concurrent calls    move: a steered handover
mx: mutual exclusion          obs: Observe                part: partitions, old reads
presence: marks of presence   raw: the harness's access   rec: fields of the record
ren: renewal                  res: resignation            run: Run
store: Describe               tok: fencing tokens         try: TryCampaign
watch: Watch`

// A Harness describes how the suite reaches a store.
type Harness struct {
	// Open returns a new handle on the same store at each call. The suite
	// closes it. Open may call t.Fatal.
	Open func(t testing.TB) backends.Backend

	// OpenFaulty returns a new handle whose client can fail, and a function that
	// sets its fault; at first it has none. A fault may affect other handles
	// too. The suite closes the handle. ThroughProxy returns an OpenFaulty for
	// a store that listens on a TCP address. Without it the case in which a
	// write fails in the client (amb/client) is not applicable.
	OpenFaulty func(t testing.TB) (b backends.Backend, set func(Fault))

	// OpenReadOnly returns a new handle on the same store that was opened for
	// reading alone, see backends.OpenReadOnly. Give it the least rights that your
	// documentation names. The suite closes it. Without it the case auth/reader is
	// not applicable.
	OpenReadOnly func(t testing.TB) backends.Backend

	// Raw reaches the store without the backend. Without it the suite skips
	// the cases in which another process deletes, damages or restores a
	// record, and lists them as not applicable.
	Raw *Raw

	// Setups are wrong set-ups of the store, by name. Each function opens a
	// handle on one and returns the error, which must be one of package
	// backends and say what to change (case bad/schema).
	Setups map[string]func(t testing.TB) error

	// TTL is the lease time of the cases with the elector. The default is
	// 400 ms, or the backend's MinTTL if that is longer. If these cases fail
	// on a busy machine or a distant store, set a longer one.
	TTL time.Duration

	// Slow selects small counts and doubles the time that a call may take. Set
	// it for a store where each write costs milliseconds, as a disk or a
	// server does.
	Slow bool

	// MaxContent is the largest content, in bytes, that Raw.Put can write. It
	// is at least 64 KiB, which every record fits in. The default, 0, stands for
	// a store that takes more than 1 MiB, the largest content that the suite
	// writes.
	MaxContent int

	// NotApplicable names cases that this store cannot show, with the reason.
	NotApplicable map[string]string

	// Report is called once for each case that ran, with its group and name, as
	// in backend/mx/race; with "passed", "failed" or "not applicable"; and with
	// the rule that was broken or the reason why it is not applicable.
	Report func(name, result, reason string)
}

// Raw reaches the store without the backend. All functions fail the test on
// error.
type Raw struct {
	// Get returns what the store keeps for an election, in a form that Put
	// takes. It returns nil if the store keeps nothing: nil means absent, and
	// content of no bytes is an empty slice that is not nil.
	Get func(t testing.TB, name string) []byte
	// Put replaces what the store keeps.
	Put func(t testing.TB, name string, content []byte)
	// Delete removes it.
	Delete func(t testing.TB, name string)
	// Depose removes the mark of the holder's presence. It is required for a
	// PresenceWatcher.
	Depose func(t testing.TB, name string)

	// Spoiled are bad records in the store's own form. The first key is a case
	// ("bad/ttl"), the second describes the record. Each function damages the
	// valid record that a Swap has written, and keeps its attempt unless that
	// is what it damages. A store that keeps the JSON of backends.Encode leaves
	// Spoiled nil, and the suite damages the JSON.
	Spoiled map[string]map[string]func(t testing.TB, name string)
}

// Run runs every case as a subtest of t, in the stages that the package
// documentation describes.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Open == nil {
		t.Fatal("the harness has no Open: the suite needs a function that returns a new handle on the store")
	}
	if h.MaxContent != 0 && h.MaxContent < 64<<10 {
		t.Fatalf("Harness.MaxContent is at least 64 KiB, or 0: it is %d", h.MaxContent)
	}
	for name, reason := range h.NotApplicable {
		if !known(name) || reason == "" {
			t.Errorf("Harness.NotApplicable has %q: there is no such case, or it has no reason", name)
		}
	}
	t.Logf("the first part of a case's name:\n%s", Legend)
	var broken []string
	rest := map[string]int{} // cases that were not run, by group
	for _, g := range stages {
		var left []testCase
		if left = g.cases; len(broken) == 0 {
			broken, left = g.run(t, h)
		}
		rest[g.group] += len(left)
	}
	if len(broken) > 0 {
		t.Logf("not run: %d cases of group backend, %d of group elector and %d of group group, because they rest on the rules that were broken:\n%s", rest["backend"], rest["elector"], rest["group"], strings.Join(broken, "\n"))
	}
}
