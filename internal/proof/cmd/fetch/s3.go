package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// s3rverLock pins s3rver and all that it needs, as dynaliteLock does.
//
//go:embed s3rver/package.json s3rver/package-lock.json
var s3rverLock embed.FS

// fetchS3 gets the servers that play Amazon S3: gofakes3 for the suite, versitygw for
// the cases of exclusion, and s3rver, which ignores conditions and must be refused.
func fetchS3(ctx context.Context) (string, error) {
	var did []string
	for _, fetch := range []func(context.Context) (string, error){
		goServer{
			name:    "gofakes3",
			module:  goFakeS3Module,
			pkg:     goFakeS3Module + "/cmd/gofakes3",
			version: binaries.GoFakeS3Version,
			path:    binaries.GoFakeS3Path,
			there:   binaries.GoFakeS3,
			replace: wholeAnswers,
		}.fetch,
		goServer{
			name:    "versitygw",
			module:  "github.com/versity/versitygw",
			pkg:     "github.com/versity/versitygw/cmd/versitygw",
			version: binaries.VersityGWVersion,
			ask:     "-version",
			path:    binaries.VersityGWPath,
			there:   binaries.VersityGW,
		}.fetch,
		nodeServer{
			name:    "s3rver",
			version: binaries.S3rverVersion,
			lock:    s3rverLock,
			path:    binaries.S3rverPath,
			there:   binaries.S3rver,
		}.fetch,
	} {
		one, err := fetch(ctx)
		if err != nil {
			return "", err
		}
		did = append(did, one)
	}
	return strings.Join(did, "; "), nil
}

const goFakeS3Module = "github.com/johannesboyne/gofakes3"

// wholeAnswers replaces gofakes3 by a copy with one change: it sends a copy of an
// object. The original sends the pages of its file, after the transaction that keeps
// later writes from reusing them, so that a read under load can be torn.
func wholeAnswers(ctx context.Context, dir string) (string, error) {
	source, err := moduleSource(ctx, dir, goFakeS3Module, binaries.GoFakeS3Version)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "gofakes3")
	if err := os.CopyFS(changed, os.DirFS(source)); err != nil {
		return "", err
	}
	file := filepath.Join(changed, "backend", "s3bolt", "backend.go")
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	pages, copied := []byte("bson.Unmarshal(v, &t)"), []byte("bson.Unmarshal(bytes.Clone(v), &t)")
	if n := bytes.Count(content, pages); n != 1 {
		return "", fmt.Errorf("gofakes3 %s reads an object in %d places, and this command changes one", binaries.GoFakeS3Version, n)
	}
	if err := os.WriteFile(file, bytes.Replace(content, pages, copied, 1), 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("replace %s => %s\n", goFakeS3Module, changed), nil
}
