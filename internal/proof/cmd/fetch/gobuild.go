package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// A server that is written in Go, and how to get it.
type goServer struct {
	name, module, version string
	ask                   string // the argument that makes it answer and end, if there is one
	path                  func() (string, error)
	there                 func() (string, error)

	set     string                                                // -X of the linker
	pkg     string                                                // of the command, if it is not the module
	replace func(ctx context.Context, dir string) (string, error) // lines for go.mod, or nil
}

// moduleSource returns the folder with the source of a module.
func moduleSource(ctx context.Context, dir, module, version string) (string, error) {
	said, err := command(ctx, dir, []string{"GOWORK=off"}, "go", "mod", "download", "-json", module+"@v"+version)
	if err != nil {
		return "", err
	}
	var source struct{ Dir string }
	err = json.Unmarshal([]byte(said), &source)
	return source.Dir, err
}

// oneBuild lets one build after the other have all processors.
var oneBuild sync.Mutex

// fetch builds the server from its Go module. It needs a module that requires
// it: go install refuses the replace directives that servers have in their own
// go.mod.
func (s goServer) fetch(ctx context.Context) (string, error) {
	path, err := s.path()
	if err != nil {
		return "", err
	}
	if _, err := s.there(); err == nil {
		return "there: " + path, nil
	}
	// Outside the tree, so that no go.mod or go.work above it has a say.
	module, err := os.MkdirTemp("", "fetch-"+s.name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(module)
	// A Go older than the server asks for makes the go command fetch the right
	// one.
	content := fmt.Sprintf("module fetch\n\ngo 1.26.0\n\nrequire %s v%s\n", s.module, s.version)
	if s.replace != nil {
		lines, err := s.replace(ctx, module)
		if err != nil {
			return "", err
		}
		content += lines
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(content), 0o644); err != nil {
		return "", err
	}
	out, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(out)
	oneBuild.Lock()
	defer oneBuild.Unlock()
	if _, err := s.there(); err == nil { // built meanwhile, for another store
		return "there: " + path, nil
	}
	progress("building %s %s from its Go module, which takes a minute or two the first time", s.name, s.version)
	built := filepath.Join(out, s.name)
	env := []string{"CGO_ENABLED=0", "GOWORK=off"}
	if _, err := command(ctx, module, env, "go", "build", "-mod=mod", "-trimpath", "-ldflags=-s -w"+s.set, "-o", built, cmp.Or(s.pkg, s.module)); err != nil {
		return "", fmt.Errorf("building %s %s from its Go module: %w", s.name, s.version, err)
	}
	if s.ask != "" {
		if _, err := command(ctx, module, nil, built, s.ask); err != nil {
			return "", fmt.Errorf("the built %s does not run: %w", s.name, err)
		}
	}
	if err := os.Rename(built, path); err != nil {
		return "", err
	}
	return "built from its Go module: " + path, nil
}
