package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// redisPackages are Debian's: redis-server itself has only a link to the program of
// redis-tools. The others are the libraries that a machine may lack.
var redisPackages = []string{
	"redis-tools=5:" + binaries.RedisVersion + "-*",
	"libjemalloc2=5.3.0-*",
	"liblzf1=3.6-*",
}

// fetchRedis gets Redis out of Debian's packages, without installing them: that would
// start a server.
func fetchRedis(ctx context.Context) (string, error) {
	if program, _, err := binaries.Redis(); err == nil {
		return "there: " + program, nil
	}
	path, err := binaries.RedisPath()
	if err != nil {
		return "", err
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting Redis %s from Debian's packages", binaries.RedisVersion)
	unpacked := filepath.Join(dir, "unpacked")
	if err := debian(ctx, dir, unpacked, redisPackages); err != nil {
		return "", fmt.Errorf("%w\nthe packages are those of Debian 12; on another system install Redis", err)
	}
	wanted := filepath.Join(dir, "wanted")
	if err := os.MkdirAll(filepath.Join(wanted, "lib"), 0o755); err != nil {
		return "", err
	}
	program := filepath.Join(wanted, "redis-server") // its name decides what it does
	if err := os.Rename(filepath.Join(unpacked, "usr", "bin", "redis-check-rdb"), program); err != nil {
		return "", fmt.Errorf("the packages have changed: %w", err)
	}
	libraries, _ := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "*-linux-gnu", "*.so*"))
	if len(libraries) == 0 {
		return "", errors.New("the packages have changed: they have no libraries")
	}
	for _, library := range libraries { // some are links within their folder
		if err := os.Rename(library, filepath.Join(wanted, "lib", filepath.Base(library))); err != nil {
			return "", err
		}
	}
	version, err := command(ctx, dir, []string{"LD_LIBRARY_PATH=" + filepath.Join(wanted, "lib")}, program, "--version")
	if err != nil {
		return "", fmt.Errorf("the unpacked Redis does not run: %w", err)
	}
	if !strings.Contains(version, "v="+binaries.RedisVersion+" ") {
		return "", fmt.Errorf("the unpacked Redis is another one: %s", version)
	}
	return "unpacked Debian's packages: " + path, replace(path, wanted)
}
