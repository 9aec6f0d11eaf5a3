package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/conformance/stores/internal/binaries"
)

func TestWhatIsThereIsLeftAlone(t *testing.T) {
	t.Setenv(binaries.FolderVariable, t.TempDir())
	path, err := binaries.EtcdPath()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("an etcd"), 0o755); err != nil {
		t.Fatal(err)
	}
	did, err := fetchEtcd(t.Context())
	if err != nil || !strings.Contains(did, "there: ") {
		t.Errorf("it says %q, %v", did, err)
	}
}

func TestInterruptedFetchLeavesNothing(t *testing.T) {
	stores, temporary := t.TempDir(), t.TempDir()
	t.Setenv(binaries.FolderVariable, stores)
	t.Setenv("TMPDIR", temporary)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := fetchEtcd(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("it says %v", err)
	}
	for _, dir := range []string{stores, temporary} {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left are %v, %v", left, err)
		}
	}
}

func TestLeftoversAreRemovedWhenOld(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, partial+"old"), filepath.Join(dir, partial+"young")
	for _, path := range []string{old, young} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(old, past, past); err != nil {
		t.Fatal(err)
	}
	removeLeftovers(dir)
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one is there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error(err)
	}
}

func TestUnknownStore(t *testing.T) {
	if err := run(t.Context(), []string{"clay tablets"}); err == nil || !strings.Contains(err.Error(), "etcd, postgres") {
		t.Errorf("it says %v", err)
	}
}

func TestUnpack(t *testing.T) {
	for name, ok := range map[string]bool{
		"package/native/bin/initdb":  true,
		"package/../../etc/passwd":   false,
		"native/bin/initdb":          false,
		"/package/native/bin/initdb": false,
	} {
		dir := t.TempDir()
		archive := filepath.Join(dir, "a.tgz")
		writeArchive(t, archive, name, "content")
		into := filepath.Join(dir, "into")
		if err := unpack(t.Context(), archive, into); (err == nil) != ok {
			t.Errorf("unpacking %s: %v", name, err)
		}
		if !ok {
			continue
		}
		path := filepath.Join(into, "native", "bin", "initdb")
		content, err := os.ReadFile(path)
		if err != nil || string(content) != "content" {
			t.Errorf("it holds %q, %v", content, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("it is not executable: %v, %v", info, err)
		}
		if err := checkSum(archive, "00"); err == nil || !strings.Contains(err.Error(), "pinned") {
			t.Errorf("with another sum: %v", err)
		}
	}
}

func writeArchive(t *testing.T, path, name, content string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestLinks(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "links.json")
	if err := os.MkdirAll(filepath.Join(dir, "native", "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		if err := os.WriteFile(list, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`[{"source":"native/lib/a.so.1.2","target":"native/lib/a.so.1"}]`)
	if err := link(dir, list); err != nil {
		t.Fatal(err)
	}
	// Relative, so that the folder can be renamed.
	if to, err := os.Readlink(filepath.Join(dir, "native", "lib", "a.so.1")); err != nil || to != "a.so.1.2" {
		t.Errorf("it points to %q, %v", to, err)
	}
	write(`[{"source":"native/lib/a.so.1.2","target":"../a.so.1"}]`)
	if err := link(dir, list); err == nil {
		t.Error("a link outside of the folder is made")
	}
}
