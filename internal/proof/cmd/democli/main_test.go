package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// write appends stamps to a journal.
func write(t *testing.T, path string, stamps ...stamp) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, s := range stamps {
		b := binary.NativeEndian.AppendUint64(nil, s.token)
		b = binary.NativeEndian.AppendUint64(b, uint64(s.pid))
		if _, err := f.Write(binary.NativeEndian.AppendUint64(b, uint64(s.at))); err != nil {
			t.Fatal(err)
		}
	}
}

func TestJournal(t *testing.T) {
	j := journal{path: filepath.Join(t.TempDir(), "journal")}
	if terms, err := j.read(); err != nil || len(terms) != 0 {
		t.Fatalf("no journal: %v, %v", terms, err)
	}
	write(t, j.path, stamp{7, 1, 10 * time.Second}, stamp{7, 2, 11 * time.Second}, stamp{9, 3, 12 * time.Second})
	terms, err := j.read()
	if n, _ := overlaps(terms); err != nil || len(terms) != 2 || len(terms[0].pids) != 2 || n != 0 {
		t.Fatalf("%+v, %d overlaps, %v", terms, n, err)
	}
	write(t, j.path, stamp{7, 2, 13 * time.Second})
	terms, err = j.read()
	if n, longest := overlaps(terms); err != nil || len(terms) != 2 || n != 1 || longest != time.Second {
		t.Fatalf("%+v, %d overlaps of %v, %v", terms, n, longest, err)
	}
}

func TestMutantsAreUpToDate(t *testing.T) {
	for name := range mutants {
		if _, err := overlayOf("../../../..", t.TempDir(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
