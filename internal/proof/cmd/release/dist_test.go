package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/overlay"
)

// Two builds are compared file by file.
func TestSame(t *testing.T) {
	first := map[string][]byte{"a": []byte("1"), "b": []byte("2")}
	if err := same(first, map[string][]byte{"a": []byte("1"), "b": []byte("2")}); err != nil {
		t.Error(err)
	}
	err := same(first, map[string][]byte{"a": []byte("3"), "c": []byte("2")})
	for _, want := range []string{"a differs", "b is in one", "c is in one"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestListed(t *testing.T) {
	files := map[string][]byte{"a": []byte("1"), "SHA256SUMS": []byte("6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b  a\n")}
	if err := listed(files); err != nil {
		t.Error(err)
	}
	files["b"] = nil
	if listed(files) == nil {
		t.Error("a file without a checksum is accepted")
	}
	if listed(nil) == nil {
		t.Error("nothing is accepted")
	}
}

// The bill of this test's own binary: whatever it lacks or has besides is found.
func TestBilled(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := inside(binary, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	bill := func(modules ...string) []byte {
		var components []string
		for _, m := range modules {
			name, version, _ := strings.Cut(m, " ")
			components = append(components, `{"name":"`+name+`","version":"`+version+`"}`)
		}
		return []byte(`{"metadata":{"component":{"name":"github.com/elector-go/elector/cmd/elector","version":"v0.1.0"}},"components":[` + strings.Join(components, ",") + `]}`)
	}
	if err := billed(bill(modules...), binary, "v0.1.0"); err != nil {
		t.Error(err)
	}
	if err := billed(bill(modules[1:]...), binary, "v0.1.0"); err == nil || !strings.Contains(err.Error(), modules[0]) {
		t.Errorf("a bill without %s: %v", modules[0], err)
	}
	if err := billed(bill(append(modules, "example.test/more v1.0.0")...), binary, "v0.1.0"); err == nil || !strings.Contains(err.Error(), "example.test/more") {
		t.Errorf("a bill with one more: %v", err)
	}
	if err := billed([]byte(strings.Replace(string(bill(modules...)), `"metadata":{`, `"metadata":{"timestamp":"2026-01-01T00:00:00Z",`, 1)), binary, "v0.1.0"); err == nil {
		t.Error("a bill with a time is accepted")
	}
}

// Each mutant is a text of the code, and builds.
func TestMutants(t *testing.T) {
	for name, edit := range mutants {
		root, err := filepath.Abs("../../../..")
		if err != nil {
			t.Fatal(err)
		}
		list, err := overlay.Write(root, t.TempDir(), "mutant", []overlay.Edit{edit})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cmd := exec.Command("go", "vet", "-overlay", list, "./internal/dist")
		cmd.Dir = root
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}
