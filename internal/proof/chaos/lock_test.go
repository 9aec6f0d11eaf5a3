package chaos

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A lock that is kept is seen, and one that is not is left free.
func TestStandsInLock(t *testing.T) {
	dir := t.TempDir()
	r := &Round{place: &Place{records: folder{dir: dir}}, name: "e"}
	lock, err := os.Create(filepath.Join(dir, "e.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	keep := func() error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	for _, kept := range []bool{false, true, false} {
		if kept {
			if err := keep(); err != nil {
				t.Fatal(err)
			}
		}
		if in, err := r.standsInLock(t.Context()); in != kept || err != nil {
			t.Errorf("a lock that is kept: %v; seen: %v, error %v", kept, in, err)
		}
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
			t.Fatal(err)
		}
	}
	if err := keep(); err != nil {
		t.Errorf("the lock is not free afterwards: %v", err)
	}
	r.place.records = nil
	if in, err := r.standsInLock(t.Context()); in || err != nil {
		t.Errorf("a place without a lock: %v, error %v", in, err)
	}
}
