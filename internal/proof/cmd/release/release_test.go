package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A repository with a library and a command as modules of their own, which need
// the root.
var repository = map[string]string{
	"go.mod":                "module example.test/root\n\ngo 1.25.0\n",
	"root.go":               "package root\n\nconst Name = \"root\"\n",
	"LICENSE":               "as you like\n",
	"adapters/store/go.mod": "module example.test/root/adapters/store\n\ngo 1.25.0\n\nrequire example.test/root v0.1.0\n\nreplace example.test/root => ../..\n",
	"adapters/store/a.go":   "package store\n\nimport _ \"example.test/root\"\n",
	"cmd/tool/go.mod":       "module example.test/root/cmd/tool\n\ngo 1.25.0\n\nrequire example.test/root v0.1.0\n",
	"cmd/tool/main.go":      "package main\n\nimport \"example.test/root\"\n\nfunc main() { println(root.Name) }\n",
	"internal/lab/go.mod":   "module example.test/root/internal/lab\n\ngo 1.25.0\n",
}

// commit makes a repository of the files.
func commit(t *testing.T, files map[string]string) string {
	t.Helper()
	t.Setenv("GOPROXY", "off") // nothing but the repository's own modules is needed
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+who+"_NAME", "test")
		t.Setenv("GIT_"+who+"_EMAIL", "test@example.test")
	}
	root := t.TempDir()
	for name, content := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range [][]string{{"init", "--quiet"}, {"add", "."}, {"commit", "--quiet", "-m", "all"}} {
		if _, err := git(root, command...); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestChangelog(t *testing.T) {
	root := commit(t, map[string]string{"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-02\n"})
	if err := logged(root, "v0.1.0"); err != nil {
		t.Error(err)
	}
	if err := logged(root, "v0.1.1"); err == nil || !strings.Contains(err.Error(), "## [0.1.1] - ") {
		t.Errorf("a version without a section: %v", err)
	}
}

func TestRehearsal(t *testing.T) {
	dir := t.TempDir()
	_, tags, err := rehearse(commit(t, repository), dir, "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"v0.1.0", "adapters/store/v0.1.0", "cmd/tool/v0.1.0"}; !slices.Equal(tags, want) {
		t.Errorf("tags %q, want %q", tags, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "bin", "tool")); err != nil {
		t.Error(err)
	}
}

func TestRehearsalRefuses(t *testing.T) {
	for name, c := range map[string]struct{ file, content, version, want string }{
		"a replace in a command":        {"cmd/tool/go.mod", repository["cmd/tool/go.mod"] + "\nreplace example.test/root => ../..\n", "v0.1.0", "replace directives"},
		"a version that there is not":   {"adapters/store/go.mod", repository["adapters/store/go.mod"], "v0.2.0", "example.test/root: module lookup disabled"},
		"a package that does not build": {"adapters/store/a.go", "package store\n\nimport _ \"example.test/root/missing\"\n", "v0.1.0", "example.test/root/missing"},
		"a command that does not build": {"cmd/tool/main.go", "package main\n\nfunc main() { root() }\n", "v0.1.0", "undefined: root"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for file, content := range repository {
				files[file] = content
			}
			files[c.file] = c.content
			if _, _, err := rehearse(commit(t, files), t.TempDir(), c.version); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A module that requires a version of the root builds in a clone only with a go.work.
func TestPlain(t *testing.T) {
	files := map[string]string{}
	for file, content := range repository {
		files[file] = content
	}
	if err := plain(commit(t, files)); err == nil {
		t.Error("a command builds that cannot see the root")
	}
	files["cmd/tool/go.work"] = "go 1.25.0\n\nuse (\n\t.\n\t../..\n)\n"
	if err := plain(commit(t, files)); err != nil {
		t.Error(err)
	}
}
