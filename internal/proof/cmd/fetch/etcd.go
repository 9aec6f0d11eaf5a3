package main

import (
	"context"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

func fetchEtcd(ctx context.Context) (string, error) {
	return goServer{
		name:    "etcd",
		module:  "go.etcd.io/etcd/server/v3",
		version: binaries.EtcdVersion,
		ask:     "--version",
		path:    binaries.EtcdPath,
		there:   binaries.Etcd,
	}.fetch(ctx)
}
