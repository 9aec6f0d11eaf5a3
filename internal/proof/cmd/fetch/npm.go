package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/osv-scalibr/clients/datasource"
)

// A package of npm, with the SHA-256 of its archive.
type npmPackage struct{ name, version, sum string }

func (p npmPackage) String() string { return p.name + "@" + p.version }

// get writes the package's files that keep names, or all of them if it is nil, to the
// folder into; dir is for its archive. It does without npm.
func (p npmPackage) get(ctx context.Context, dir, into string, keep func(name string) bool) error {
	archive := filepath.Join(dir, path.Base(p.name)+".tgz")
	if err := p.download(ctx, archive); err != nil {
		return fmt.Errorf("getting %s from npm: %w", p, err)
	}
	if err := unpack(ctx, archive, into, keep); err != nil {
		return fmt.Errorf("unpacking %s: %w", p, err)
	}
	return nil
}

// download gets the archive of a package without npm, from the registry that npm's
// configuration names.
func (p npmPackage) download(ctx context.Context, to string) error {
	registry, err := datasource.LoadNPMRegistryConfig(".")
	if err != nil {
		return err
	}
	answer, err := registry.MakeRequest(ctx, http.DefaultClient, p.name, "-", path.Base(p.name)+"-"+p.version+".tgz")
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the registry answers %s", answer.Status)
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, answer.Body)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return checkSum(to, p.sum)
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

// unpack writes the files of an npm archive that keep names, or all of them if it is
// nil, to the folder into. They all lie below package/, and none is a link.
func unpack(ctx context.Context, archive, into string, keep func(name string) bool) error {
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
		if keep != nil && !keep(name) {
			continue
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
