package main

import (
	"bufio"
	"context"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go/ast"
)

// root is an absolute path, as the runner's is.
var root = func() string {
	dir, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// Every test of the tree is in a part: of make test-all, or one that is run by its name.
func TestEachTestIsInAPart(t *testing.T) {
	all := parts(nil, "")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == ".stores" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		below, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
				continue
			}
			if !slices.ContainsFunc(all, func(p part) bool { return runs(t, p, filepath.ToSlash(below), f.Name.Name, tagsOf(parsed)) }) {
				t.Errorf("no part runs %s of %s", f.Name.Name, below)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tagsOf returns the constraint of a file, or nil.
func tagsOf(f *ast.File) constraint.Expr {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if e, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.Package {
				return e
			}
		}
	}
	return nil
}

// runs reports whether the part runs a test of a package, by the folder of it, in a file
// with a constraint.
func runs(t *testing.T, p part, folder, name string, tags constraint.Expr) bool {
	in := slices.ContainsFunc(p.packages, func(pattern string) bool {
		dir := path.Join(p.dir(), strings.TrimSuffix(pattern, "/..."))
		return folder == dir || strings.HasSuffix(pattern, "/...") && (dir == "." || strings.HasPrefix(folder, dir+"/")) && moduleOf(t, folder) == p.dir()
	})
	if !in {
		return false
	}
	given := strings.Split(p.tags, ",")
	if tags != nil && !tags.Eval(func(tag string) bool { return tag == "linux" || tag == "unix" || slices.Contains(given, tag) }) {
		return false
	}
	matches := func(pattern string) bool {
		first, _, _ := strings.Cut(pattern, "/")
		return regexp.MustCompile(first).MatchString(name)
	}
	return (p.run == "" || matches(p.run)) && (p.skip == "" || !matches(p.skip))
}

func moduleOf(t *testing.T, folder string) string {
	t.Helper()
	for dir := folder; ; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
			return dir
		}
		if dir == "." {
			t.Fatalf("%s is in no module", folder)
		}
	}
}

func TestNamesDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range parts([]string{"etcd", "s3"}, ".") {
		if seen[p.name] {
			t.Errorf("two parts have the name %s", p.name)
		}
		seen[p.name] = true
		if p.shared && len(p.packages) != 1 {
			t.Errorf("%s shares %d packages; a program has the tests of one", p.name, len(p.packages))
		}
		if (p.table == "") != (len(p.columns) == 0) {
			t.Errorf("%s has the table %q and the columns %v", p.name, p.table, p.columns)
		}
	}
}

// The shares of make test-all have every part once.
func TestShares(t *testing.T) {
	whole, err := chooser{all: true}.of(root)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, s := range []string{"1/3", "2/3", "3/3"} {
		c := chooser{all: true}
		if err := c.share.Set(s); err != nil {
			t.Fatal(err)
		}
		chosen, err := c.of(root)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range chosen {
			count[p.name]++
		}
	}
	for _, p := range whole {
		if count[p.name] != 1 {
			t.Errorf("%s is in %d shares", p.name, count[p.name])
		}
	}
	if _, err := (chooser{kinds: "clay"}).of(root); err == nil || !strings.Contains(err.Error(), "etcd, postgres") {
		t.Errorf("a store that is unknown: %v", err)
	}
}

func TestTouches(t *testing.T) {
	for changed, want := range map[string]struct{ touched, untouched string }{
		"partition":                    {"long/simulation", "modules/backends/s3"},
		"backends/nats":                {"suite/nats", "suite/consul"},
		"backends/consul":              {"suite/consul", "suite/nats"},
		"internal/proof/stores":        {"suite/redis", "suite/consul"},
		"cmd/elector/internal/cli":     {"modules/cmd/elector", "checker"},
		"internal/proof/chaos/checker": {"checker", "alike/postgres"},
	} {
		c := &change{root: root, folders: map[string]bool{changed: true}}
		for _, p := range parts(nil, "") {
			if p.name != want.touched && p.name != want.untouched {
				continue
			}
			if is, err := c.touches(p); err != nil || is != (p.name == want.touched) {
				t.Errorf("a change of %s touches %s: %v, %v", changed, p.name, is, err)
			}
		}
	}
}

// A slow machine does not end a part: only rest, or processor time, without an event.
func TestStillness(t *testing.T) {
	const interval = time.Minute
	hours := func(events func(i int) int, cpu func(i int) time.Duration) (after int, why string) {
		var s stillness
		for i := range 600 {
			if why := s.glance(interval, events(i), cpu(i)); why != "" {
				return i, why
			}
		}
		return 0, ""
	}
	same := func(int) int { return 7 }
	if _, why := hours(same, func(i int) time.Duration { return time.Duration(i) * 3 * time.Second }); why != "" {
		t.Errorf("a tenth of the processor time that ends a part ends it: %s", why)
	}
	if _, why := hours(func(i int) int { return i / 9 }, func(int) time.Duration { return 0 }); why != "" {
		t.Errorf("an event in nine minutes of rest: %s", why)
	}
	if after, why := hours(same, func(int) time.Duration { return time.Second }); !strings.Contains(why, "no processor") || after > 12 {
		t.Errorf("rest: %q after %d minutes", why, after)
	}
	if after, why := hours(same, func(i int) time.Duration { return time.Duration(i) * 2 * time.Minute }); !strings.Contains(why, "of a processor") || after > 40 {
		t.Errorf("an endless loop: %q after %d minutes", why, after)
	}
}

// A part fails that ran no test, that ends with an error, or that prints no events.
func TestOutcomes(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"passed": {`echo '{"Action":"pass","Package":"p","Test":"TestA"}'`, ""},
		"none":   {`echo '{"Action":"pass","Package":"p"}'`, "ran no test"},
		"failed": {`echo '{"Action":"output","Package":"p","Test":"TestA","Output":"a.go:1: wrong\n"}'; echo '{"Action":"fail","Package":"p","Test":"TestA"}'; exit 1`, "1 tests failed"},
		"other":  {`echo 'x.go:1: undefined: y'; exit 2`, "no test failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatch()
			err := w.run(t.Context(), exec.Command("sh", "-c", c.script))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("it says %v, want %q", err, c.want)
			}
			if name == "failed" && !strings.Contains(w.failures(), "a.go:1: wrong") || name == "other" && !strings.Contains(w.failures(), "undefined: y") {
				t.Errorf("it prints %q", w.failures())
			}
		})
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.Command("sh", "-c", `echo '{"Action":"run","Test":"TestA"}'; exec sleep 1000`)
	w := newWatch()
	go func() {
		for {
			w.mutex.Lock()
			n := w.events
			w.mutex.Unlock()
			if n > 0 {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := w.run(ctx, cmd); err == nil || err.Error() != "interrupted" {
		t.Errorf("it says %v", err)
	}
}

func TestEvents(t *testing.T) {
	var got []event
	events(bufio.NewReader(strings.NewReader(`{"Action":"run","Test":"A"}`+"\nFAIL x [build failed]\n"+`{"Action":"pass"}`)), func(e event) { got = append(got, e) })
	if len(got) != 3 || got[0].Test != "A" || got[1].Output != "FAIL x [build failed]\n" || got[2].Action != "pass" {
		t.Errorf("it reads %+v", got)
	}
}
