package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// getJava returns the java that runs ZooKeeper: JAVA_HOME's, the fetched one, the one in
// PATH if it is new enough, or else one that it gets out of Debian's package.
func getJava(ctx context.Context) (string, error) {
	if java, err := binaries.FetchedJava(); err == nil && os.Getenv("JAVA_HOME") == "" {
		return java, nil
	}
	java, err := binaries.Java()
	if err == nil {
		err = checkJava(ctx, java)
	} else if os.Getenv("JAVA_HOME") == "" {
		err = errors.New("there is no java in PATH")
	}
	if err == nil || ctx.Err() != nil {
		return java, err
	}
	if os.Getenv("JAVA_HOME") != "" {
		return "", fmt.Errorf("JAVA_HOME: %w; unset it, or let it name Java %s or later", err, binaries.JavaVersion)
	}
	return fetchJava(ctx, err)
}

// printedJava is what java --version begins with, which versions before 9 refuse.
var printedJava = regexp.MustCompile(`^\S+ (\d+)`)

// checkJava refuses versions that ZooKeeper's packages do not run on.
func checkJava(ctx context.Context, java string) error {
	printed, err := command(ctx, "", nil, java, "--version")
	if ctx.Err() != nil {
		return err
	}
	version := printedJava.FindStringSubmatch(printed)
	if err != nil || version == nil {
		return fmt.Errorf("%s --version names no version: %.200s %w", java, printed, err)
	}
	least, _ := strconv.Atoi(binaries.JavaVersion)
	if n, _ := strconv.Atoi(version[1]); n < least {
		return fmt.Errorf("%s is version %s, and ZooKeeper needs %d", java, version[1], least)
	}
	return nil
}

// fetchJava gets a Java runtime out of Debian's package, without installing it; missing
// says why none of the machine's is used.
func fetchJava(ctx context.Context, missing error) (string, error) {
	path, err := binaries.JavaPath()
	if err != nil {
		return "", err
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting Java %s from Debian's packages: %v", binaries.JavaVersion, missing)
	unpacked := filepath.Join(dir, "unpacked")
	if err := debian(ctx, dir, unpacked, []string{"openjdk-" + binaries.JavaVersion + "-jre-headless=" + binaries.JavaVersion + ".*"}); err != nil {
		return "", fmt.Errorf("%w\nthe package is Debian 12's; on another system install Java %s or later", err, binaries.JavaVersion)
	}
	homes, _ := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "jvm", "java-"+binaries.JavaVersion+"-openjdk-*"))
	if len(homes) != 1 {
		return "", fmt.Errorf("the package has changed: it has %d Java runtimes", len(homes))
	}
	if err := selfContained(homes[0], unpacked); err != nil {
		return "", fmt.Errorf("the package has changed: %w", err)
	}
	if err := checkJava(ctx, filepath.Join(homes[0], "bin", "java")); err != nil {
		return "", fmt.Errorf("the unpacked Java does not run: %w", err)
	}
	if err := replace(path, homes[0]); err != nil {
		return "", err
	}
	return binaries.FetchedJava()
}

// selfContained puts into dir what its links name by their absolute paths, which lies
// below root. Links to what other packages have are removed.
func selfContained(dir, root string) error {
	return filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		target, err := os.Readlink(at)
		if err != nil || !filepath.IsAbs(target) {
			return err
		}
		if err := os.Remove(at); err != nil {
			return err
		}
		err = os.Rename(filepath.Join(root, target), at)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}
