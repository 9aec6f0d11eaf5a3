package main

import (
	"cmp"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// dynaliteLock pins dynalite and all that it needs, with check sums. To renew
// it: npm install --package-lock-only --omit-lockfile-registry-resolved
//
//go:embed dynalite/package.json dynalite/package-lock.json
var dynaliteLock embed.FS

// fetchDynamoDB gets dynalite, which plays DynamoDB, from npm.
func fetchDynamoDB(ctx context.Context) (string, error) {
	return nodeServer{
		name:    "dynalite",
		version: binaries.DynaliteVersion,
		lock:    dynaliteLock,
		path:    binaries.DynalitePath,
		there:   binaries.Dynalite,
	}.fetch(ctx)
}

// A server that is written for Node.js, and how to get it.
type nodeServer struct {
	name, version string
	lock          embed.FS // a folder of its name
	path          func() (string, error)
	there         func() (string, error)
	part          string // of it that has to load; empty for all
}

func (s nodeServer) fetch(ctx context.Context) (string, error) {
	path, err := s.path()
	if err != nil {
		return "", err
	}
	node, err := getNode(ctx)
	if err != nil {
		return "", err
	}
	if _, err := s.there(); err == nil {
		return "there: " + path, nil
	}
	partial, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	dir := filepath.Join(partial, s.name)
	pinned, err := fs.Sub(s.lock, s.name)
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(dir, pinned); err != nil {
		return "", err
	}
	progress("getting %s %s from npm", s.name, s.version)
	if _, err := node.run(ctx, dir, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	// Loads all of it, the compiled part for this system too.
	if _, err := command(ctx, dir, nil, node.program, "-e", "require('"+cmp.Or(s.part, s.name)+"')"); err != nil {
		return "", fmt.Errorf("the fetched %s does not run: %w", s.name, err)
	}
	return "got " + s.name + " from npm: " + path, replace(path, dir)
}
