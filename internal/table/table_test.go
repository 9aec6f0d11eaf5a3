package table

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/conformance"
)

// Two processes append what their stores did, and one table shows what did not run.
func TestWhatDidNotRunIsSeen(t *testing.T) {
	const variable = "ELECTOR_TEST_RESULTS"
	path := filepath.Join(t.TempDir(), "results")
	t.Setenv(variable, path)
	one, other := &Table{}, &Table{}
	one.Add("etcd", "a process")
	one.Report("etcd", "b", Passed, "")
	one.Report("etcd", "a", "failed", "")
	one.Save(variable, nil)
	other.Add("gcs", "an emulator")
	other.Report("gcs", "a", NotApplicable, "it has no users")
	other.Save(variable, []string{"a", "c"})
	const want = `case  etcd         gcs
a     failed       not applicable [1]
b     passed       DID NOT RUN
c     DID NOT RUN  DID NOT RUN
` + conformance.Legend + `
[1] gcs, a: it has no users
etcd: 1 of 3 cases passed; a process
gcs: 0 of 3 cases passed; an emulator
`
	all, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if ok := all.Write(&b); ok || b.String() != want {
		t.Errorf("it reports %v and writes\n%s\nwant\n%s", ok, b.String(), want)
	}
}

func TestGood(t *testing.T) {
	one := &Table{}
	one.Add("etcd", "a process")
	one.Report("etcd", "a", Passed, "")
	one.Report("etcd", "b", NotApplicable, "")
	if !one.Write(&strings.Builder{}) {
		t.Error("a case that is not applicable counts as one that failed")
	}
	for _, came := range []string{"failed", ""} {
		one.Report("etcd", "b", came, "")
		if one.Write(&strings.Builder{}) {
			t.Errorf("a case that came out as %q counts as one that passed", came)
		}
	}
}

func TestNoResults(t *testing.T) {
	if all, err := Read(filepath.Join(t.TempDir(), "none")); err != nil || all.Has("etcd") {
		t.Errorf("a file that is not there has %v, %v", all, err)
	}
}
