package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var license = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenses returns the licences of Go and of the modules in a platform's binary, each
// text once: most of them ask that a binary comes with them.
func (r *release) licenses(p platform) ([]byte, error) {
	env, err := r.goEnv(p)
	if err != nil {
		return nil, err
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = filepath.Join(r.root, command), env
		said, err := output(cmd)
		return strings.TrimSpace(string(said)), err
	}
	goroot, err := run("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	// Not those that stand in this repository, which have its licence.
	listed, err := run("list", "-deps", "-f", "{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", ".")
	if err != nil {
		return nil, err
	}
	lines := strings.Fields(strings.ReplaceAll(listed, " ", "@"))
	modules := []string{"Go's standard library\t" + goroot}
	for i := 0; i+1 < len(lines); i += 2 {
		modules = append(modules, lines[i]+"\t"+lines[i+1])
	}
	slices.Sort(modules[1:])
	var texts []string
	users := map[string][]string{} // of each text
	for _, m := range slices.Compact(modules) {
		name, dir, _ := strings.Cut(m, "\t")
		found, err := licensesIn(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, text := range found {
			if users[text] == nil {
				texts = append(texts, text)
			}
			users[text] = append(users[text], name)
		}
	}
	var all strings.Builder
	all.WriteString("The command elector contains these modules under these licences.\n")
	for _, text := range texts {
		fmt.Fprintf(&all, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 78), strings.Join(users[text], "\n"), strings.Trim(text, "\n"))
	}
	return []byte(all.String()), nil
}

func licensesIn(dir string) (texts []string, err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.IsDir() || !license.MatchString(f.Name()) || filepath.Ext(f.Name()) == ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.ReplaceAll(string(text), "\r\n", "\n"))
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("no licence in %s", dir)
	}
	return texts, nil
}
