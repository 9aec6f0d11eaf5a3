package main

import (
	"context"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchNATS builds nats-server.
func fetchNATS(ctx context.Context) (string, error) {
	return goServer{
		name:    "nats-server",
		module:  "github.com/nats-io/nats-server/v2",
		version: binaries.NATSVersion,
		ask:     "--version",
		path:    binaries.NATSPath,
		there:   binaries.NATS,
	}.fetch(ctx)
}
