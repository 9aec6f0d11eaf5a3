package table

import (
	"strings"
	"testing"

	"github.com/elector-go/elector/conformance"
)

func TestWhatDidNotRunIsSeen(t *testing.T) {
	var b strings.Builder
	all := &Table{}
	all.Add("etcd", "a process")
	all.Add("gcs", "an emulator")
	all.Report("etcd", "b", "passed", "")
	all.Report("etcd", "a", "FAILED", "")
	all.Report("gcs", "a", NotApplicable, "it has no users")
	const head = `case  etcd    gcs
a     FAILED  not applicable [1]
b     passed  DID NOT RUN
`
	const foot = `
[1] gcs, a: it has no users
etcd: 1 of 2 cases passed; a process
gcs: 0 of 2 cases passed; an emulator
`
	if all.write(&b, nil, nil); b.String() != head+conformance.Legend+foot {
		t.Errorf("it writes\n%s\nwant\n%s", b.String(), head+conformance.Legend+foot)
	}
	b.Reset()
	all.write(&b, []string{"etcd", "postgres"}, []string{"c"})
	if got := b.String(); strings.Count(got, "DID NOT RUN") != 2 || !strings.Contains(got, "postgres: 0 of 1 cases passed") {
		t.Errorf("with a store and a case without a report:\n%s", got)
	}
}
