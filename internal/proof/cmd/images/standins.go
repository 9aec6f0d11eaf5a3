package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// edition is part of every stand-in's tag. Raise it when one's files or
// settings change: an image that is there is not built again.
const edition = "2"

// A standIn is an image with the same store as the official one, or one that
// plays it, at the same port and with the same command line. It has what
// make stores fetched and what else these programs need of this machine, and
// nothing else.
type standIn struct {
	version func(context.Context) (string, error)
	fill    func(context.Context, *root) error
	changes []string // settings, as lines of a Dockerfile
}

const (
	userID = 999
	data   = "/data" // in the images of our own making
)

var standIns = map[string]standIn{
	"etcd": {
		version: fixed(binaries.EtcdVersion),
		fill: func(_ context.Context, r *root) error {
			etcd, err := binaries.Etcd()
			if err != nil {
				return err
			}
			return r.program(etcd, "/usr/local/bin/etcd")
		},
		changes: []string{"EXPOSE 2379 2380", `CMD ["/usr/local/bin/etcd"]`},
	},
	"gcs": {
		version: fixed(binaries.FakeGCSVersion),
		fill: func(_ context.Context, r *root) error {
			server, err := binaries.FakeGCS()
			if err != nil {
				return err
			}
			return r.program(server, "/bin/fake-gcs-server")
		},
		changes: []string{"EXPOSE 4443", `ENTRYPOINT ["/bin/fake-gcs-server", "-data", "/data"]`},
	},
	"zookeeper": {
		version: fixed(binaries.ZooKeeperVersion),
		fill:    fillZooKeeper,
		// The official image's entry point takes JVMFLAGS too.
		changes: []string{
			"EXPOSE 2181",
			fmt.Sprintf("USER %d", userID),
			`ENTRYPOINT ["/bin/sh", "-c", "exec /java/bin/java $JVMFLAGS -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp '/zookeeper/*' ` + binaries.ZooKeeperMain + ` /conf/zoo.cfg"]`,
		},
	},
	"dynamodb": {
		version: fixed("dynalite-" + binaries.DynaliteVersion),
		fill:    func(_ context.Context, r *root) error { return fillNode(r, binaries.DynalitePath, "/dynalite") },
		// Of the arguments, which are DynamoDB local's, it takes none.
		changes: []string{
			"EXPOSE 8000",
			fmt.Sprintf("USER %d", userID),
			`ENTRYPOINT ["/bin/sh", "-c", "exec /bin/node /dynalite/` + binaries.DynaliteScript + ` --host=0.0.0.0 --port=8000 --path=` + data + `/db --createTableMs=0 --deleteTableMs=0 --updateTableMs=0"]`,
		},
	},
	"azureblob": {
		version: fixed("azurite-" + binaries.AzuriteVersion),
		fill:    func(_ context.Context, r *root) error { return fillNode(r, binaries.AzuritePath, "/azurite") },
		// The first argument is the program of the official image.
		changes: []string{
			"EXPOSE 10000",
			fmt.Sprintf("USER %d", userID),
			`ENTRYPOINT ["/bin/sh", "-c", "exec /bin/node /azurite/` + binaries.AzuriteScript + ` \"$@\""]`,
		},
	},
	"consul": {
		version: fixed(binaries.ConsulVersion),
		fill: func(_ context.Context, r *root) error {
			consul, err := binaries.Consul()
			if err != nil {
				return err
			}
			return r.program(consul, "/bin/consul")
		},
		changes: []string{"EXPOSE 8500", fmt.Sprintf("USER %d", userID), `ENTRYPOINT ["/bin/consul"]`},
	},
	"mysql": {
		version: fixed("mariadb-" + binaries.MariaDBVersion),
		fill:    fillMariaDB,
		changes: []string{
			"EXPOSE 3306",
			fmt.Sprintf("USER %d", userID),
			`ENTRYPOINT ["/bin/sh", "/entrypoint.sh"]`,
		},
	},
	"s3": {
		version: fixed(binaries.GoFakeS3Name),
		fill: func(_ context.Context, r *root) error {
			server, err := binaries.GoFakeS3()
			if err != nil {
				return err
			}
			return r.program(server, "/bin/gofakes3")
		},
		changes: []string{"EXPOSE 9000", fmt.Sprintf("USER %d", userID), `ENTRYPOINT ["/bin/gofakes3"]`},
	},
	"postgres": {
		version: postgresVersion,
		fill:    fillPostgres,
		changes: []string{
			"EXPOSE 5432",
			fmt.Sprintf("USER %d", userID),
			"ENV PGDATA=" + data + "/db",
			`ENTRYPOINT ["/bin/sh", "/entrypoint.sh"]`,
			`CMD ["postgres"]`,
		},
	},
}

func fixed(version string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return version, nil }
}

// desktop are Java's libraries that need a screen, and skipped are the parts
// that no running program needs.
var desktop = regexp.MustCompile(`^lib/lib(awt|jawt|atk|font|freetype|javajpeg|jsound|lcms|mlib|splash)`)
var skipped = []string{"jmods", "include", "man", "docs", "demo", "sample", "legal", "src.zip", "lib/src.zip", "lib/ct.sym"}

func fillZooKeeper(_ context.Context, r *root) error {
	java, err := binaries.Java()
	if err != nil {
		return err
	}
	if java, err = filepath.EvalSymlinks(java); err != nil {
		return err
	}
	home := filepath.Dir(filepath.Dir(java))
	if err := r.tree(home, "/java", func(path string) bool { return slices.Contains(skipped, path) || desktop.MatchString(path) }); err != nil {
		return err
	}
	natives, err := filepath.Glob(filepath.Join(home, "lib", "*.so"))
	if err != nil {
		return err
	}
	for _, native := range append(natives, java, filepath.Join(home, "lib", "server", "libjvm.so")) {
		if below, err := filepath.Rel(home, native); err == nil && desktop.MatchString(below) {
			continue
		}
		if err := r.libraries(native, filepath.Join(home, "lib"), filepath.Join(home, "lib", "server")); err != nil {
			return err
		}
	}
	classes, err := binaries.ZooKeeper()
	if err != nil {
		return err
	}
	for _, class := range classes {
		if err := r.file(class, "/zookeeper/"+filepath.Base(class)); err != nil {
			return err
		}
	}
	return r.folder("/conf")
}

// debianNode are the parts of Node.js that Debian keeps outside of its program.
const debianNode = "/usr/share/nodejs/"

// fillNode puts Node.js and a program for it in.
func fillNode(r *root, from func() (string, error), to string) error {
	node, err := binaries.Node()
	if err != nil {
		return err
	}
	if node, err = filepath.EvalSymlinks(node); err != nil {
		return err
	}
	if err := r.program(node, "/bin/node"); err != nil {
		return err
	}
	for _, part := range []string{"acorn", "acorn-walk", "cjs-module-lexer", "undici"} {
		if _, err := os.Stat(debianNode + part); err == nil {
			if err := r.tree(debianNode+part, debianNode+part, nil); err != nil {
				return err
			}
		}
	}
	program, err := from()
	if err != nil {
		return err
	}
	return r.tree(program, to, nil)
}

// postgresVersion is that of the PostgreSQL which is installed here or was
// fetched.
func postgresVersion(ctx context.Context) (string, error) {
	bin, _, err := binaries.Postgres()
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	fields := strings.Fields(string(out)) // "postgres (PostgreSQL) 15.4 (some build)"
	if err != nil || len(fields) < 3 {
		return "", fmt.Errorf("postgres in %s does not tell its version: %w", bin, err)
	}
	return fields[2], nil
}

//go:embed postgres.sh
var postgresEntrypoint string

func fillPostgres(ctx context.Context, r *root) error {
	bin, fetched, err := binaries.Postgres()
	if err != nil {
		return err
	}
	if err := r.text("/entrypoint.sh", postgresEntrypoint, 0o755); err != nil {
		return err
	}
	if err := r.libraries(filepath.Join(bin, "postgres"), filepath.Join(filepath.Dir(bin), "lib")); err != nil {
		return err
	}
	if fetched { // it finds everything from where its programs are
		return r.tree(filepath.Dir(bin), "/usr/local", nil)
	}
	for _, program := range []string{"postgres", "initdb"} {
		if err := r.program(filepath.Join(bin, program), filepath.Join(bin, program)); err != nil {
			return err
		}
	}
	// It finds them from where it was built for, or from the same distance.
	for _, what := range []string{"--pkglibdir", "--sharedir"} {
		dir, err := exec.CommandContext(ctx, filepath.Join(bin, "pg_config"), what).Output()
		if err != nil {
			return fmt.Errorf("where the installed PostgreSQL has its files: pg_config %s in %s: %w", what, bin, err)
		}
		at := strings.TrimSpace(string(dir))
		if err := r.tree(at, at, func(path string) bool { return strings.Contains(path, "llvmjit") || path == "bitcode" }); err != nil {
			return err
		}
	}
	if err := r.text("/usr/local/bin/initdb", "#!/bin/sh\nexec "+bin+"/initdb \"$@\"\n", 0o755); err != nil {
		return err
	}
	if err := r.text("/usr/local/bin/postgres", "#!/bin/sh\nexec "+bin+"/postgres \"$@\"\n", 0o755); err != nil {
		return err
	}
	// Debian's place for its socket.
	if err := r.ours("/var/run/postgresql"); err != nil {
		return err
	}
	const zones = "/usr/share/zoneinfo"
	return r.tree(zones, zones, nil)
}

//go:embed mysql.sh
var mysqlEntrypoint string

// fillMariaDB puts the server in /mariadb, and makes root of all addresses an
// administrator without a password, which the official image is told to do.
func fillMariaDB(_ context.Context, r *root) error {
	from, err := binaries.MariaDB()
	if err != nil {
		return err
	}
	tables, err := binaries.MariaDBTables("test")
	if err != nil {
		return err
	}
	tables += "insert into mysql.global_priv select '%', User, Priv from mysql.global_priv where User = 'root' limit 1;\n"
	return errors.Join(
		r.text("/entrypoint.sh", mysqlEntrypoint, 0o755),
		r.text("/mariadb/tables.sql", tables, 0o644),
		r.ours(data+"/db"),
		r.libraries(filepath.Join(from, "mariadbd"), filepath.Join(from, "lib")),
		r.tree(from, "/mariadb", nil),
	)
}
