package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// zooKeeperPackages are Debian's, of those that ZooKeeper's depends on the ones
// that a server needs. Pinned are the versions of the software; Debian's own
// numbers behind them grow with its security updates, and its archive has only
// the latest.
var zooKeeperPackages = []string{
	"libzookeeper-java=" + binaries.ZooKeeperVersion + "-*",
	"libcommons-cli-java=1.5.0-*",
	"libcommons-io-java=2.11.0-*",
	"libdropwizard-metrics-java=3.2.6-*",
	"libjackson2-annotations-java=2.14.0-*",
	"libjackson2-core-java=2.14.1-*",
	"libjackson2-databind-java=2.14.0-*",
	"libnetty-java=1:4.1.48-*",
	"libslf4j-java=1.7.32-*",
	"libsnappy-java=1.1.8.3-*",
}

// fetchZooKeeper gets ZooKeeper out of Debian's packages, without installing
// them: no root is needed.
func fetchZooKeeper(ctx context.Context) (string, error) {
	path, err := binaries.ZooKeeperPath()
	if err != nil {
		return "", err
	}
	java, err := getJava(ctx)
	if err != nil {
		return "", err
	}
	if _, err := binaries.ZooKeeper(); err == nil {
		return "there: " + path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting ZooKeeper %s from Debian's packages", binaries.ZooKeeperVersion)
	unpacked := filepath.Join(dir, "unpacked")
	if err := debian(ctx, dir, unpacked, zooKeeperPackages); err != nil {
		return "", fmt.Errorf("%w\nwith another system than Debian 12, start a ZooKeeper and name it in ELECTOR_TEST_ZOOKEEPER, or use Docker", err)
	}
	wanted := filepath.Join(dir, "wanted")
	if err := os.Mkdir(wanted, 0o755); err != nil {
		return "", err
	}
	for _, class := range binaries.ZooKeeperClasses {
		// The names without versions are links within the folder.
		content, err := os.ReadFile(filepath.Join(unpacked, "usr", "share", "java", class))
		if err != nil {
			return "", fmt.Errorf("the packages have changed: %w", err)
		}
		if err := os.WriteFile(filepath.Join(wanted, class), content, 0o644); err != nil {
			return "", err
		}
	}
	if err := tryZooKeeper(ctx, java, wanted); err != nil {
		return "", fmt.Errorf("the unpacked ZooKeeper does not run: %w", err)
	}
	return "unpacked Debian's packages: " + path, replace(path, wanted)
}

// tryZooKeeper starts the server without a configuration, and it must report
// that this is what it lacks.
func tryZooKeeper(ctx context.Context, java, dir string) error {
	classes, err := binaries.ZooKeeperIn(dir)
	if err != nil {
		return err
	}
	_, err = command(ctx, dir, nil, java, "-cp", strings.Join(classes, string(os.PathListSeparator)), binaries.ZooKeeperMain, "no-such-file")
	if err == nil {
		return errors.New("it ends without a word")
	}
	if !strings.Contains(err.Error(), "Invalid config") {
		return err
	}
	return nil
}

// debian unpacks packages into a folder, which needs no privileges; dir
// is for what it leaves.
func debian(ctx context.Context, dir, into string, packages []string) error {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("this system has no apt-get to get Debian's packages with")
	}
	debs := filepath.Join(dir, "debs")
	for _, d := range []string{debs, filepath.Join(dir, "lists", "partial"), filepath.Join(dir, "cache", "archives", "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	if err := aptDownload(ctx, debs, nil, packages); err != nil {
		if ctx.Err() != nil {
			return err
		}
		// The machine's lists of packages are missing or old. Lists of our own
		// leave them alone.
		ours := []string{"-o", "Dir::State::Lists=" + filepath.Join(dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(dir, "cache")}
		// Without the option it succeeds with the lists that it had, none here.
		update := append(slices.Clone(ours), "-o", "APT::Update::Error-Mode=any")
		if _, err := command(ctx, debs, nil, "apt-get", append(update, aptOptions("update")...)...); err != nil {
			return err
		}
		if err := aptDownload(ctx, debs, ours, packages); err != nil {
			return err
		}
	}
	files, _ := filepath.Glob(filepath.Join(debs, "*.deb"))
	if len(files) != len(packages) {
		return fmt.Errorf("apt-get download got %d packages of %d", len(files), len(packages))
	}
	for _, file := range files {
		if _, err := command(ctx, debs, nil, "dpkg-deb", "-x", file, into); err != nil {
			return err
		}
	}
	return nil
}

func aptDownload(ctx context.Context, dir string, options, packages []string) error {
	_, err := command(ctx, dir, nil, "apt-get", append(append(options, aptOptions("download")...), packages...)...)
	return err
}

// aptOptions keep apt-get from changing to a user who may not write here.
func aptOptions(verb string) []string { return []string{"-q", "-o", "APT::Sandbox::User=root", verb} }
