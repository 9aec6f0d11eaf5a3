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

// mariaDBPackages are Debian's: the server, and the libraries that a machine may
// lack.
var mariaDBPackages = []string{
	"mariadb-server-core=1:" + binaries.MariaDBVersion + ".*",
	"libaio1=0.3.113-*",
	"libnuma1=2.0.16-*",
	"liburing2=2.3-*",
}

// fetchMariaDB gets MariaDB's server out of Debian's packages, without installing
// them: no root is needed.
func fetchMariaDB(ctx context.Context) (string, error) {
	path, err := binaries.MariaDBPath()
	if err != nil {
		return "", err
	}
	if _, err := binaries.MariaDB(); err == nil {
		return "there: " + path, nil
	}
	dir, err := scratch()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	progress("getting MariaDB %s from Debian's packages", binaries.MariaDBVersion)
	unpacked := filepath.Join(dir, "unpacked")
	if err := debian(ctx, dir, unpacked, mariaDBPackages); err != nil {
		return "", fmt.Errorf("%w\nthe packages are those of Debian 12; nothing else gives a MariaDB to the tests", err)
	}
	wanted := filepath.Join(dir, "wanted")
	if err := gather(unpacked, wanted); err != nil {
		return "", fmt.Errorf("the packages have changed: %w", err)
	}
	// A server refuses root, and what runs it instead must be able to read this.
	if _, err := command(ctx, dir, nil, "chmod", "-R", "a+rX", wanted); err != nil {
		return "", err
	}
	version, err := command(ctx, dir, []string{"LD_LIBRARY_PATH=" + filepath.Join(wanted, "lib")}, filepath.Join(wanted, "mariadbd"), "--no-defaults", "--version")
	if err != nil {
		return "", fmt.Errorf("the unpacked MariaDB does not run: %w", err)
	}
	if !strings.Contains(version, binaries.MariaDBVersion+".") {
		return "", fmt.Errorf("the unpacked MariaDB is another one: %s", version)
	}
	return "unpacked Debian's packages: " + path, replace(path, wanted)
}

// gather moves what is wanted of the unpacked packages into one folder.
func gather(unpacked, wanted string) error {
	if err := os.MkdirAll(wanted, 0o755); err != nil {
		return err
	}
	share := filepath.Join(unpacked, "usr", "share", "mysql")
	for name, from := range map[string]string{
		"mariadbd":   filepath.Join(unpacked, "usr", "sbin", "mariadbd"),
		"errmsg.sys": filepath.Join(share, "english", "errmsg.sys"),
	} {
		if err := os.Rename(from, filepath.Join(wanted, name)); err != nil {
			return err
		}
	}
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql", "charsets"} {
		if err := os.Rename(filepath.Join(share, name), filepath.Join(wanted, name)); err != nil {
			return err
		}
	}
	return libraries(unpacked, wanted)
}

// libraries moves the libraries of unpacked packages into the folder lib of wanted.
func libraries(unpacked, wanted string) error {
	if err := os.MkdirAll(filepath.Join(wanted, "lib"), 0o755); err != nil {
		return err
	}
	found, _ := filepath.Glob(filepath.Join(unpacked, "usr", "lib", "*-linux-gnu", "*.so*"))
	others, _ := filepath.Glob(filepath.Join(unpacked, "lib", "*-linux-gnu", "*.so*"))
	if found = append(found, others...); len(found) == 0 {
		return errors.New("they have no libraries")
	}
	for _, library := range found { // some are links within their folder
		if err := os.Rename(library, filepath.Join(wanted, "lib", filepath.Base(library))); err != nil {
			return err
		}
	}
	return nil
}
