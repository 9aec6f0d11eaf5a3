package binaries

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	// From a package of the nested module, whose go.mod is not the root's.
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(FolderVariable, "")
	got, err := Folder()
	if want := filepath.Join(here, "../../../../.stores"); err != nil || got != want {
		t.Errorf("Folder is %q, %v, want %q", got, err, want)
	}

	outside := t.TempDir()
	t.Chdir(outside)
	if got, err := Folder(); err == nil || !strings.Contains(err.Error(), FolderVariable) {
		t.Errorf("outside of the repository Folder is %q, %v", got, err)
	}
	t.Setenv(FolderVariable, outside)
	if got, err := Folder(); err != nil || got != outside {
		t.Errorf("Folder is %q, %v, want %q", got, err, outside)
	}
}

func TestEtcdMustBeAProgram(t *testing.T) {
	t.Setenv(FolderVariable, t.TempDir())
	path, err := Etcd()
	if err == nil {
		t.Error("an empty folder has an etcd")
	}
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Etcd(); err == nil {
		t.Error("a file that cannot be executed is an etcd")
	}
}
