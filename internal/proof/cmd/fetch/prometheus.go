package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchPrometheus gets Prometheus and promtool out of Debian's package, without
// installing it: that would start a server.
func fetchPrometheus(ctx context.Context) (string, error) {
	path, err := binaries.PrometheusPath()
	if err != nil {
		return "", err
	}
	if _, _, err := binaries.Prometheus(); err == nil {
		return "there: " + path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting Prometheus %s from Debian's packages", binaries.PrometheusVersion)
	unpacked := filepath.Join(dir, "unpacked")
	if err := debian(ctx, dir, unpacked, []string{"prometheus=" + binaries.PrometheusVersion + "+*"}); err != nil {
		return "", fmt.Errorf("%w\nthe package is that of Debian 12; nothing else gives a Prometheus to the tests", err)
	}
	wanted := filepath.Join(dir, "wanted")
	if err := os.Mkdir(wanted, 0o755); err != nil {
		return "", err
	}
	for _, name := range []string{"prometheus", "promtool"} {
		if err := os.Rename(filepath.Join(unpacked, "usr", "bin", name), filepath.Join(wanted, name)); err != nil {
			return "", fmt.Errorf("the package has changed: %w", err)
		}
		version, err := command(ctx, dir, nil, filepath.Join(wanted, name), "--version")
		if err != nil {
			return "", fmt.Errorf("the unpacked %s does not run: %w", name, err)
		}
		if !strings.Contains(version, binaries.PrometheusVersion+"+") {
			return "", fmt.Errorf("the unpacked %s is another one: %s", name, version)
		}
	}
	return "unpacked Debian's package: " + path, replace(path, wanted)
}
