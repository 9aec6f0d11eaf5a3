package elector

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// logSources are the files that log, except for commands and tests.
var logSources = []string{"*.go", "electorhttp/*.go", "partition/*.go", "backends/*/*.go", "internal/aside/*.go"}

func sources(t *testing.T) (all string) {
	t.Helper()
	for _, pattern := range append(logSources, "backends/*.go") {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all += string(b)
		}
	}
	return all
}

func all(pattern, text string) (found []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// logLines returns every line that the code can log.
func logLines(t *testing.T) []string {
	t.Helper()
	code := sources(t)
	lines := all(`(?:\.(?:Info|Warn|Error)\(|\.Log\([^"\n]*, |NewRecord\(time\.Now\(\), slog\.LevelWarn, )"(elector: [^"]*)"[,)]`, code)
	whats := all(`newBackoff\("([^"]*)"\)`, code)
	for _, suffix := range all(`newBackoff\(what ?\+ ?"([^"]*)"\)`, code) {
		for _, what := range all(`\.watch\(ctx, [\w.]+, "([^"]*)", `, code) {
			whats = append(whats, what+suffix)
		}
	}
	for _, what := range whats {
		for _, suffix := range all(`[lL]og\.\w+\([^"\n]*"elector: "\+b\.what\+"([^"]*)"`, code) {
			lines = append(lines, "elector: "+what+suffix)
		}
	}
	for _, what := range all(`\.complain\("([^"]*)"`, code) {
		for _, prefix := range all(`\.Log\([^"\n]*, "(elector: [^"]*)"\+what`, code) {
			lines = append(lines, prefix+what)
		}
	}
	for _, prefix := range all(`WarnContext\(ctx, "(elector: [^"]*)"\+refused\.text`, code) {
		for _, text := range all(`(?m)^\t(?:unknown|noAddress|unreached|silent): +"([^"]*)",$`, code) { // with an error: others are not logged
			lines = append(lines, prefix+text)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// docs/operate.md explains each line that the code logs, and no other.
func TestLogLinesOnPage(t *testing.T) {
	page, err := os.ReadFile("docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := all("(?m)^\\| `(elector: [^`]*)` \\|", string(page))
	logged := logLines(t)
	if len(logged) < 20 {
		t.Fatalf("only %d lines are logged: %q", len(logged), logged)
	}
	for _, line := range logged {
		if !slices.Contains(explained, line) {
			t.Errorf("docs/operate.md does not explain the log line %q", line)
		}
	}
	for _, line := range explained {
		if !slices.Contains(logged, line) {
			t.Errorf("docs/operate.md explains the log line %q, which no code logs", line)
		}
	}
}

// The causes and errors that docs/operate.md quotes are texts of the code. A … stands
// for what differs.
func TestCausesOnPage(t *testing.T) {
	page, err := os.ReadFile("docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	_, causes, _ := strings.Cut(string(page), "### Causes of")
	causes, symptoms, found := strings.Cut(causes, "## By symptom")
	if !found {
		t.Fatal("docs/operate.md has no causes or no symptoms")
	}
	quotes := append(all("(?m)^\\| `([^`]*)` \\|", causes), all("`(the election is held: [^`]*)`", symptoms)...)
	if len(quotes) < 10 {
		t.Errorf("docs/operate.md quotes %d causes", len(quotes))
	}
	code := sources(t)
	for _, quote := range quotes {
		quote = strings.TrimPrefix(quote, ErrHeld.Error()+": ")
		for _, part := range strings.Split(quote, "…") {
			if part = strings.Trim(part, " ;:"); !strings.Contains(code, part) {
				t.Errorf("docs/operate.md quotes %q, which no code says", part)
			}
		}
	}
}

// docs/operate.md names every metric of electorprom and of elector serve, and every alert,
// and no other.
func TestMetricsOnPage(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page, code := read("docs/operate.md"), read("integrations/electorprom/electorprom.go")+read("integrations/electorprom/group.go")+read("cmd/elector/internal/status/metrics.go")
	for what, c := range map[string]struct{ named, exist []string }{
		"metric": {all(`\b(elector_[a-z_]*[a-z])\b`, strings.ReplaceAll(page, "_count{", "{")), all(`"(elector_[a-z_]+)"`, code)},
		"alert":  {all(`\b(Elector[A-Z]\w+)`, page), all(`(?m)^      - alert: (\w+)$`, read("integrations/electorprom/alerts.yaml"))},
	} {
		if len(c.exist) < 5 {
			t.Errorf("only %d %ss exist: %q", len(c.exist), what, c.exist)
		}
		for _, name := range c.exist {
			if !slices.Contains(c.named, name) {
				t.Errorf("docs/operate.md does not name the %s %s", what, name)
			}
		}
		for _, name := range c.named {
			if !slices.Contains(c.exist, name) {
				t.Errorf("docs/operate.md names the %s %s, which does not exist", what, name)
			}
		}
	}
}

// Each store has a page in docs/stores, all in the same order, and a package comment that
// leaves the rest to it.
func TestStorePages(t *testing.T) {
	sections := []string{"URL", "What it costs", "Consistency", "Permissions", "Server settings", "Limits", "Look-alikes"}
	heading := regexp.MustCompile(`(?m)^## (.*)$`)
	comment := regexp.MustCompile(`(?m)(?:^//.*\n)+package `)
	folders, err := filepath.Glob("backends/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	stores := map[string]string{} // the comment of each package
	for _, f := range folders {
		store := filepath.Base(filepath.Dir(f))
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if c := comment.FindString(string(b)); strings.HasPrefix(c, "// Package ") {
			stores[store] = c
		}
	}
	if len(stores) != 14 {
		t.Errorf("%d stores have a package comment, not 14", len(stores))
	}
	for store, c := range stores {
		if n := strings.Count(c, "\n"); n > 80 {
			t.Errorf("the comment of package %s has %d lines, more than 80", store, n)
		}
		page := "docs/stores/" + store + ".md"
		if !strings.Contains(c, page) {
			t.Errorf("the comment of package %s does not name %s", store, page)
		}
		b, err := os.ReadFile(page)
		if err != nil {
			t.Error(err)
			continue
		}
		var got []string
		for _, m := range heading.FindAllStringSubmatch(string(b), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, sections) {
			t.Errorf("%s has the sections %q, not %q", page, got, sections)
		}
	}
}

// docs/stability.md has each public package, and no other, and names this record's schema and
// this module's Go.
func TestStabilityPage(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	page := read("docs/stability.md")
	promised := all("(?m)^\\| `([^`]*)` \\| (?:stable|may change) \\|", page)
	public := slices.Compact(all(`(?m)^pkg github.com/elector-go/([^,]*),`, read("internal/api/api.txt")))
	for i := range public {
		public[i] = cmp.Or(strings.TrimPrefix(strings.TrimPrefix(public[i], "elector"), "/"), "elector")
	}
	slices.Sort(public)
	if public = slices.Compact(public); len(public) < 20 {
		t.Errorf("only %d packages are public: %q", len(public), public)
	}
	for _, p := range public {
		if !slices.Contains(promised, p) {
			t.Errorf("docs/stability.md does not have the package %s", p)
		}
	}
	for i, p := range promised {
		if !slices.Contains(public, p) || slices.Contains(promised[:i], p) {
			t.Errorf("docs/stability.md has the package %s, which is not public, or has it twice", p)
		}
	}
	needed := all(`(?m)^go (\d+\.\d+)`, read("go.mod"))
	if len(needed) != 1 || !strings.Contains(page, "The library needs Go "+needed[0]+".") {
		t.Errorf("docs/stability.md does not name Go %q", needed)
	}
	if !strings.Contains(page, fmt.Sprintf("schema number of a record is %d.", backends.Schema)) {
		t.Errorf("docs/stability.md does not name schema %d", backends.Schema)
	}
}
