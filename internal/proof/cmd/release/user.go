package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/modules"
)

// A user has an empty module cache and gets our modules through the proxy.
type user struct {
	*proxy
	dir string // with a folder for each thing that it tries
	env []string
}

// newUser looks for other people's modules in this machine's cache before it
// asks for them.
func newUser(dir string, p *proxy, public []modules.Module) (*user, error) {
	listed, err := modules.Go(".", nil, "env", "GOMODCACHE", "GOPROXY", "GOSUMDB")
	if err != nil {
		return nil, err
	}
	had := strings.Split(strings.TrimSpace(listed), "\n")
	return &user{proxy: p, dir: dir, env: append(os.Environ(), "GOENV=off", "GOWORK=off",
		"GOPROXY=file://"+p.dir+",file://"+had[0]+"/cache/download,"+had[1], "GONOPROXY=", "GOPRIVATE=",
		"GOSUMDB="+had[2], "GONOSUMDB="+path.Dir(public[0].Path),
		"GOMODCACHE="+filepath.Join(dir, "cache"), "GOBIN="+filepath.Join(dir, "bin"),
		"GOFLAGS=-mod=mod -modcacherw -trimpath", // trimmed, so that the cache of builds serves
		"ELECTOR_URL=file://"+filepath.Join(dir, "elections"),
	)}, nil
}

// try gets a module in an empty folder and runs a program with all its packages,
// and installs its commands.
func (u *user) try(m modules.Module) error {
	libraries, commands, err := modules.Packages(filepath.Join(u.clone, m.Dir), u.env)
	if err != nil {
		return err
	}
	for _, command := range commands {
		if _, err := u.run(u.dir, "go", "install", command+"@"+u.version); err != nil {
			return err
		}
	}
	if len(libraries) == 0 {
		return nil
	}
	program := "package main\n\nimport (\n"
	for _, path := range libraries {
		program += fmt.Sprintf("\t_ %q\n", path)
	}
	_, err = u.program(program+")\n\nfunc main() {}\n", "go", "get", m.Path+"@"+u.version)
	return err
}

// program runs a program in an empty folder, after the command that gets what
// it needs, and returns what it prints.
func (u *user) program(source string, get ...string) (string, error) {
	dir, err := os.MkdirTemp(u.dir, "program")
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		return "", err
	}
	for _, command := range [][]string{{"go", "mod", "init", "example.test/user"}, get} {
		if _, err := u.run(dir, command...); err != nil {
			return "", err
		}
	}
	return u.run(dir, "go", "run", ".")
}

func (u *user) run(dir string, command ...string) (string, error) {
	fmt.Println("release:", strings.Join(command, " "))
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Env = dir, u.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, out)
	}
	return string(out), nil
}
