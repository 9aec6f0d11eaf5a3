package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands on the pages exist, with these flags and arguments. Those that end by
// themselves run, on an empty store.
func TestCommandsOnPages(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(len(pages), err)
	}
	store := []string{"ELECTOR_URL=file://" + t.TempDir()}
	count := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split(string(text), "```sh\n")[1:] {
			block, _, _ = strings.Cut(block, "```")
			for line := range strings.Lines(block) {
				line, _, _ = strings.Cut(line, "#")
				line = strings.TrimSpace(line)
				count++
				switch fields := strings.Fields(line); fields[0] {
				case "elector":
					command(t, store, fields[1:])
				case "date":
					if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
						t.Errorf("%s: %s: %v: %s", page, line, err, out)
					}
				default:
					t.Errorf("%s: this test knows no command %s", page, fields[0])
				}
			}
		}
	}
	if count < 5 {
		t.Errorf("there are only %d commands on the pages", count)
	}
}

func command(t *testing.T, store, args []string) {
	t.Helper()
	found, rest, err := (&tool{}).root().Find(args)
	if err == nil {
		err = found.ParseFlags(rest)
	}
	if err == nil {
		err = found.ValidateArgs(found.Flags().Args())
	}
	if err != nil || found.Name() == "elector" {
		t.Errorf("elector %s: %v", strings.Join(args, " "), err)
		return
	}
	switch found.Name() {
	case "doctor", "list":
		if r := run(t, store, args...); r.code != 0 {
			t.Errorf("elector %s: code %d, %s", strings.Join(args, " "), r.code, r.err)
		}
	case "leader":
		if r := run(t, store, args...); r.code != exitVacant {
			t.Errorf("elector %s: code %d, %s", strings.Join(args, " "), r.code, r.err)
		}
	}
}
