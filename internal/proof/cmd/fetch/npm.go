package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// pins name a package of npm and all that it needs, with check sums. To renew one:
// npm install --package-lock-only --omit-lockfile-registry-resolved, and remove what
// names a host.
//
//go:embed azurite dynalite
var pins embed.FS

// fetchDynamoDB gets dynalite, which plays DynamoDB, from npm.
func fetchDynamoDB(ctx context.Context) (string, error) {
	return npm(ctx, "dynalite", "dynalite", binaries.DynaliteVersion, binaries.DynalitePath, binaries.Dynalite)
}

// fetchAzureBlob gets azurite, which plays Azure Blob Storage, from npm, without the
// five sixths of it that report its use to its maker and keep its data in an SQL
// server.
func fetchAzureBlob(ctx context.Context) (string, error) {
	return npm(ctx, "azurite", "azurite/dist/src/blob/BlobServerFactory", binaries.AzuriteVersion, binaries.AzuritePath, binaries.Azurite)
}

// npm gets a package. Its part is what has to load.
func npm(ctx context.Context, name, part, version string, place, there func() (string, error)) (string, error) {
	path, err := place()
	if err != nil {
		return "", err
	}
	node, err := binaries.Node()
	if err != nil {
		return "", err
	}
	if err := checkNode(ctx, name, node); err != nil {
		return "", err
	}
	if _, err := there(); err == nil {
		return "there: " + path, nil
	}
	partial, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	pinned, err := fs.Sub(pins, name)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(partial, name)
	if err := os.CopyFS(dir, pinned); err != nil {
		return "", err
	}
	progress("getting %s %s from npm", name, version)
	if _, err := command(ctx, dir, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	// Loads all of it, the compiled part for this system too.
	if _, err := command(ctx, dir, nil, node, "-e", "require('"+part+"')"); err != nil {
		return "", fmt.Errorf("the fetched %s does not run: %w", name, err)
	}
	return "got " + name + " from npm: " + path, replace(path, dir)
}

// checkNode refuses versions that a program does not work with.
func checkNode(ctx context.Context, name, node string) error {
	said, err := command(ctx, "", nil, node, "--version")
	if err != nil {
		return err
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(said, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < 20 {
		return fmt.Errorf("%s needs Node.js 20 or later, and %s is %s; install a newer one", name, node, strings.TrimSpace(said))
	}
	return nil
}
