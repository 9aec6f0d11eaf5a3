package main

import (
	"context"
	"embed"
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
			module:  "github.com/johannesboyne/gofakes3",
			pkg:     "github.com/johannesboyne/gofakes3/cmd/gofakes3",
			version: binaries.GoFakeS3Version,
			path:    binaries.GoFakeS3Path,
			there:   binaries.GoFakeS3,
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
