package main

import (
	"context"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchConsul builds Consul, which is for tests only: its licence is the Business
// Source License.
func fetchConsul(ctx context.Context) (string, error) {
	return goServer{
		name:    "consul",
		module:  "github.com/hashicorp/consul",
		version: binaries.ConsulVersion,
		ask:     "version",
		path:    binaries.ConsulPath,
		there:   binaries.Consul,
	}.fetch(ctx)
}
