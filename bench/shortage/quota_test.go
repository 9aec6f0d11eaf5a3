package shortage

import (
	"os"
	"path/filepath"
	"testing"
)

// A quota writes what the two versions of control groups read, and takes the groups away
// that are left over.
func TestQuota(t *testing.T) {
	for _, c := range []struct{ parent, file, bound, none string }{
		{"cpu", "cpu.cfs_quota_us", "6500", "-1"},
		{".", "cpu.max", "6500 100000", "max 100000"},
	} {
		root := t.TempDir()
		parent := filepath.Join(root, c.parent)
		left := filepath.Join(parent, groupPrefix+"999999999")
		if err := os.MkdirAll(left, 0o777); err != nil {
			t.Fatal(err)
		}
		if c.parent == "." {
			if err := write(filepath.Join(root, "cgroup.controllers"), "cpu"); err != nil {
				t.Fatal(err)
			}
		}
		q, err := newQuota(root, os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		check := func(err error, want string) {
			got, err2 := os.ReadFile(filepath.Join(q.folder, c.file))
			if err != nil || err2 != nil || string(got) != want {
				t.Errorf("%s is %q, errors %v and %v; want %q", c.file, got, err, err2, want)
			}
		}
		check(nil, c.none)
		check(q.set(0.065), c.bound)
		check(q.lift(), c.none)
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
	if _, err := newQuota(filepath.Join(t.TempDir(), "none"), os.Getpid()); err == nil {
		t.Error("no error without control groups")
	}
}
