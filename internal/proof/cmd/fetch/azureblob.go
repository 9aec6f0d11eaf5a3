package main

import (
	"context"
	"embed"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// azuriteLock pins azurite as dynaliteLock does, without the five sixths of it that
// report its use to its maker, or keep its data in an SQL server: the package nothing
// is in their place.
//
//go:embed azurite
var azuriteLock embed.FS

// fetchAzureBlob gets azurite, which plays Azure Blob Storage, from npm.
func fetchAzureBlob(ctx context.Context) (string, error) {
	return nodeServer{
		name:    "azurite",
		version: binaries.AzuriteVersion,
		lock:    azuriteLock,
		path:    binaries.AzuritePath,
		there:   binaries.Azurite,
		part:    "azurite/dist/src/blob/BlobServerFactory",
	}.fetch(ctx)
}
