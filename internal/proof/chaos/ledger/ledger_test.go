package ledger

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var first = Entry{
	Time: time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC), Commit: "0123456789ab-dirty", Seed: 41, Duration: 10 * time.Minute,
	Places: []string{"etcd", "etcd 3 nodes", "file"}, Faults: 400, Elections: 500, Overlaps: 1, Stale: 2, Violations: 3, Problem: "3 violations",
}

func appends(t *testing.T, path string, e Entry) {
	t.Helper()
	if err := Append(path, e); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) ([]Entry, []error) {
	t.Helper()
	all, bad, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return all, bad
}

func TestLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "ledger.tsv")
	if all, bad := read(t, path); len(all)+len(bad) > 0 || Next(all, 7) != 7 {
		t.Fatalf("no file: %v, %v, next seed %d", all, bad, Next(all, 7))
	}
	second := first
	second.Seed, second.Overlaps, second.Stale, second.Violations, second.Problem = 42, 0, 0, 0, ""
	appends(t, path, first)
	appends(t, path, second)
	all, bad := read(t, path)
	if len(bad) > 0 || !reflect.DeepEqual(all, []Entry{first, second}) {
		t.Fatalf("read %+v, %v", all, bad)
	}
	if !first.Bad() || second.Bad() {
		t.Error("the first found something, the second did not")
	}
	if next := Next(all, 7); next != 43 {
		t.Errorf("the next seed is %d", next)
	}
	if s := Total(all); s != (Sum{2, 1, 20 * time.Minute, 800, 1000, 1, 2, 3}) {
		t.Errorf("the sum is %+v", s)
	}
	content, err := os.ReadFile(path)
	if err != nil || strings.Count(string(content), "\n") != 3 || !strings.HasPrefix(string(content), columns) {
		t.Errorf("%v\n%s", err, content)
	}
}

func TestLineHasOneLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.tsv")
	e := first
	e.Problem = "the store\tsays:\n\tno\n"
	appends(t, path, e)
	e.Problem = "the store says: no"
	if all, bad := read(t, path); len(bad) > 0 || !reflect.DeepEqual(all, []Entry{e}) {
		t.Errorf("read %+v, %v", all, bad)
	}
}

// Lines that cannot be read are reported, and hide none of the others: not even one that
// was cut off by a full disk.
func TestBadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.tsv")
	good := strings.TrimSuffix(first.line(), "\n")
	bads := []string{
		"hello",
		good + "\tmore",
		strings.Replace(good, "\t41\t", "\t-41\t", 1),
		strings.Replace(good, "\t400\t", "\tmany\t", 1),
		strings.Replace(good, "10m", "10 apples", 1),
		strings.Replace(good, "2031", "MMXXXI", 1),
		good[:len(good)/2],
	}
	if err := os.WriteFile(path, []byte(columns+"\n"+good+"\n\n"+strings.Join(bads, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, bad := read(t, path); len(all) != 1 || len(bad) != len(bads) {
		t.Errorf("read %v, %v", all, bad)
	}
	appends(t, path, first)
	all, bad := read(t, path)
	if len(all) != 2 || len(bad) != len(bads) || !strings.Contains(bad[0].Error(), path+":4: ") {
		t.Errorf("read %v, %v", all, bad)
	}
	// A line that is whole but for its end may have lost digits.
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, bad := read(t, path); len(all) != 0 || len(bad) != 1 {
		t.Errorf("read %v, %v", all, bad)
	}
}
