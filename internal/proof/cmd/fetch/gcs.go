package main

import (
	"context"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchGCS gets fake-gcs-server, which plays Google Cloud Storage.
func fetchGCS(ctx context.Context) (string, error) {
	return goServer{
		name:    "fake-gcs-server",
		module:  "github.com/fsouza/fake-gcs-server",
		version: binaries.FakeGCSVersion,
		ask:     "-help",
		path:    binaries.FakeGCSPath,
		there:   binaries.FakeGCS,
	}.fetch(ctx)
}
