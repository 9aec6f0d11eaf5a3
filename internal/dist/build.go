package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// command is the package that is built.
const command = "cmd/elector"

// identify finds out what is released.
func (r *release) identify(version string) error {
	git := func(args ...string) (string, error) {
		said, err := output(exec.Command("git", append([]string{"-C", r.root}, args...)...))
		return strings.TrimSpace(string(said)), err
	}
	changed, err := git("status", "--porcelain")
	if err != nil {
		return err
	}
	if r.commit, err = git("rev-parse", "HEAD"); err != nil {
		return err
	}
	switch r.version = version; {
	case version != "" && changed != "":
		return fmt.Errorf("the tree is not that of a commit, so it is not %s; commit these, or give no version:\n%s", version, changed)
	case version == "":
		// Only the root's tags: those of the other modules begin with a folder.
		if r.version, err = git("describe", "--tags", "--always", "--match", "v*"); err != nil {
			return err
		}
		if changed != "" {
			r.version += "-dirty"
		}
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = git("log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

// goEnv is the environment of a build, in which no setting of the machine changes the
// binary.
func (r *release) goEnv(p platform) ([]string, error) {
	work, err := filepath.Abs(filepath.Join(r.root, command, "go.work"))
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), "GOOS="+p.system, "GOARCH="+p.arch, "CGO_ENABLED=0", "GOWORK="+work,
		"GOFLAGS=-trimpath -buildvcs=false", "GOAMD64=v1", "GOARM64=v8.0", "GOFIPS140=off"), nil
}

// build returns the path of the platform's binary.
func (r *release) build(p platform) (string, error) {
	binary := filepath.Join(r.scratch, r.name(p), "elector")
	const variables = "github.com/elector-go/elector/cmd/elector/internal/cli."
	cmd := exec.Command("go", "build", "-o", binary,
		"-ldflags", "-s -w -X "+variables+"version="+r.version+" -X "+variables+"commit="+r.commit, ".")
	var err error
	cmd.Dir = filepath.Join(r.root, command)
	if cmd.Env, err = r.goEnv(p); err != nil {
		return "", err
	}
	_, err = output(cmd)
	return binary, err
}

// help returns the man pages and the completions, which this machine's binary writes.
func (r *release) help(binary string) (files []file, err error) {
	run := func(args ...string) ([]byte, error) {
		cmd := exec.Command(binary, args...)
		cmd.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()))
		return output(cmd)
	}
	pages := filepath.Join(r.scratch, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return nil, err
	}
	if _, err := run("man", pages); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		page, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"man/" + filepath.Base(name), 0o644, page})
	}
	for shell, name := range map[string]string{"bash": "elector.bash", "zsh": "_elector", "fish": "elector.fish"} {
		script, err := run("completion", shell)
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, 0o644, script})
	}
	return files, nil
}

// tool runs a program of Go at its version, for this machine.
func (r *release) tool(program string, args ...string) error {
	cmd := exec.Command("go", append([]string{"run", program}, args...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off", fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()))
	_, err := output(cmd)
	return err
}

// output runs a command, and puts what it prints as errors into its error.
func output(cmd *exec.Cmd) ([]byte, error) {
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, said.String())
	}
	return out, err
}
