package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/elector-go/elector/conformance/stores/internal/binaries"
)

const etcdModule = "go.etcd.io/etcd/server/v3"

// fetchEtcd builds the etcd server from its Go module. It needs a module that
// requires it: go install refuses the replace directives of etcd's own go.mod.
func fetchEtcd(ctx context.Context) (string, error) {
	path, err := binaries.EtcdPath()
	if err != nil {
		return "", err
	}
	if _, err := binaries.Etcd(); err == nil {
		return "there: " + path, nil
	}
	// Outside the tree, so that no go.mod or go.work above it has a say.
	module, err := os.MkdirTemp("", "fetch-etcd-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(module)
	// A Go older than etcd asks for makes the go command fetch the right one.
	content := fmt.Sprintf("module fetch\n\ngo 1.25.0\n\nrequire %s v%s\n", etcdModule, binaries.EtcdVersion)
	if err := os.WriteFile(filepath.Join(module, "go.mod"), []byte(content), 0o644); err != nil {
		return "", err
	}
	out, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(out)
	built := filepath.Join(out, "etcd")
	env := []string{"CGO_ENABLED=0", "GOWORK=off"}
	if _, err := command(ctx, module, env, "go", "build", "-mod=mod", "-trimpath", "-ldflags=-s -w", "-o", built, etcdModule); err != nil {
		return "", fmt.Errorf("building etcd %s from its Go module: %w", binaries.EtcdVersion, err)
	}
	if _, err := command(ctx, module, nil, built, "--version"); err != nil {
		return "", fmt.Errorf("the built etcd does not run: %w", err)
	}
	if err := os.Rename(built, path); err != nil {
		return "", err
	}
	return "built from its Go module: " + path, nil
}
