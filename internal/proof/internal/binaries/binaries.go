// Package binaries knows where the programs of the real stores are kept, and
// in which versions.
package binaries

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// The pinned versions. Module proxies' and registries' idea of the latest one
// is not to be relied on.
const (
	EtcdVersion     = "3.7.3"
	PostgresVersion = "17.10.0-beta.17" // of the packed binaries; one on the machine is taken as it is

	ZooKeeperVersion  = "3.8.0" // Debian 12's
	JavaVersion       = "17"    // of Debian 12's package; a machine's own may be later
	NodeVersion       = "20.20.2"
	NPMVersion        = "10.9.9"
	MariaDBVersion    = "10.11" // Debian 12's, with its latest mends
	DynaliteVersion   = "4.0.0"
	AzuriteVersion    = "3.37.0"
	FakeGCSVersion    = "1.56.1"
	RedisVersion      = "7.0.15" // Debian 12's; one on the machine is taken as it is
	PrometheusVersion = "2.42.0" // Debian 12's
	ConsulVersion     = "1.20.1" // later ones need submodules that the checksum database does not have
	KubernetesVersion = "1.36.3"
	NATSVersion       = "2.12.3"
	GoFakeS3Version   = "1.2.0"
	VersityGWVersion  = "1.8.0"
	S3rverVersion     = "3.7.1"
)

// FolderVariable names the environment variable that overrides Folder.
const FolderVariable = "ELECTOR_STORES_DIR"

// root is how the go.mod of the repository's root begins.
const root = "module github.com/elector-go/elector"

// Folder returns where fetched programs are kept: $ELECTOR_STORES_DIR, or
// .stores in the repository's root, found upwards from the working directory.
// The folder need not exist.
func Folder() (string, error) {
	if dir := os.Getenv(FolderVariable); dir != "" {
		return filepath.Abs(dir)
	}
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		switch is, err := isRoot(dir); {
		case err != nil:
			return "", err
		case is:
			return filepath.Join(dir, ".stores"), nil
		case dir == filepath.Dir(dir):
			return "", fmt.Errorf("no folder above %s has the go.mod of %s; work inside the repository or set %s", start, strings.TrimPrefix(root, "module "), FolderVariable)
		}
	}
}

func isRoot(dir string) (bool, error) {
	f, err := os.Open(filepath.Join(dir, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); strings.HasPrefix(line, "module ") {
			return line == root, nil
		}
	}
	return false, lines.Err()
}

// within returns the path of what lies in Folder under the name.
func within(name string) (string, error) {
	dir, err := Folder()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, name), nil
}

// EtcdPath returns where the etcd server is, or would be once it is fetched.
func EtcdPath() (string, error) { return within("etcd-" + EtcdVersion) }

// Etcd returns the fetched etcd server.
func Etcd() (string, error) {
	path, err := EtcdPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}

// PostgresPath returns where fetched PostgreSQL programs are, or would be once
// they are fetched: a folder with bin, lib and share.
func PostgresPath() (string, error) { return within("postgresql-" + PostgresVersion) }

// Postgres returns the folder of initdb and postgres: the newest one that
// Debian's packages installed, the one in PATH, or the fetched one. fetched
// says which it is.
func Postgres() (bin string, fetched bool, err error) {
	if bin = installedPostgres(); bin != "" {
		return bin, false, nil
	}
	path, err := PostgresPath()
	if err != nil {
		return "", false, err
	}
	bin = filepath.Join(path, "bin")
	return bin, true, bothPrograms(bin)
}

func installedPostgres() string {
	// Debian keeps each major version's servers in a folder outside PATH.
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	newest, at := 0, ""
	for _, bin := range bins {
		major, err := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
		if err == nil && major > newest && bothPrograms(bin) == nil {
			newest, at = major, bin
		}
	}
	if at != "" {
		return at
	}
	initdb, err := exec.LookPath("initdb")
	if err != nil {
		return ""
	}
	// A link in PATH stands next to links only; postgres finds its libraries
	// from where it really is.
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return ""
	}
	if bin := filepath.Dir(initdb); bothPrograms(bin) == nil {
		return bin
	}
	return ""
}

func bothPrograms(bin string) error {
	return errors.Join(executable(filepath.Join(bin, "initdb")), executable(filepath.Join(bin, "postgres")))
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() || (runtime.GOOS != "windows" && info.Mode()&0o111 == 0) {
		return fmt.Errorf("%s is not a program", path)
	}
	return nil
}
