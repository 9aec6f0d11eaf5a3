package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// dynaliteLock pins dynalite and all that it needs, with check sums. To renew
// it: npm install --package-lock-only --omit-lockfile-registry-resolved
//
//go:embed dynalite/package.json dynalite/package-lock.json
var dynaliteLock embed.FS

// fetchDynamoDB gets dynalite, which plays DynamoDB, from npm.
func fetchDynamoDB(ctx context.Context) (string, error) {
	path, err := binaries.DynalitePath()
	if err != nil {
		return "", err
	}
	node, err := binaries.Node()
	if err != nil {
		return "", err
	}
	if err := checkNode(ctx, node); err != nil {
		return "", err
	}
	if _, err := binaries.Dynalite(); err == nil {
		return "there: " + path, nil
	}
	partial, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	dir := filepath.Join(partial, "dynalite")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		content, err := dynaliteLock.ReadFile("dynalite/" + name)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return "", err
		}
	}
	progress("getting dynalite %s from npm", binaries.DynaliteVersion)
	if _, err := command(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	// Loads all of it, the compiled part for this system too.
	if _, err := command(ctx, dir, nil, node, "-e", "require('dynalite')"); err != nil {
		return "", fmt.Errorf("the fetched dynalite does not run: %w", err)
	}
	return "got dynalite from npm: " + path, replace(path, dir)
}

// checkNode refuses versions that dynalite does not work with.
func checkNode(ctx context.Context, node string) error {
	said, err := command(ctx, "", nil, node, "--version")
	if err != nil {
		return err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(said, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 20 {
		return fmt.Errorf("dynalite needs Node.js 20 or later, and %s is %s; install a newer one", node, strings.TrimSpace(said))
	}
	return nil
}
