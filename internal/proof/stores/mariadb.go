package stores

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	_ "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// mariaDBDatabase is the database of the tests.
const mariaDBDatabase = "test"

// StartMariaDB starts a MariaDB, as a process, whose administrator root needs no
// password. URL is the data source name of an empty database for the driver
// "mysql" of database/sql. See Start.
func StartMariaDB(ctx context.Context) (*Store, error) {
	s, err := mariaDBServer(ctx, quick)
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind: "mariadb", How: mariaDBHow(s), URL: mariaDBName(s.address()), Address: s.address(), PID: s.pid, Admin: Login{User: "root"}, server: s,
	}, nil
}

func mariaDBHow(s *server) string { return "local process " + s.name + " (Debian's packages)" }

// mariaDBServer starts a MariaDB with more arguments.
func mariaDBServer(ctx context.Context, m manner, more ...string) (*server, error) {
	from, err := binaries.MariaDB()
	if err != nil {
		return nil, fmt.Errorf("no MariaDB to test with: %w; run make stores", err)
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	if m == quick {
		more = append([]string{"--innodb-flush-method=nosync"}, more...) // it still writes at each commit
	}
	return newServer(ctx, recipe{
		name:    "MariaDB " + binaries.MariaDBVersion,
		program: "/usr/bin/env", // becomes the server
		account: account,
		prepare: func(ctx context.Context, s *server) error { return mariaDBInstall(ctx, s, from) },
		arguments: func(s *server) []string {
			return append(append(mariaDBProgram(s, from),
				"--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.port), "--skip-name-resolve",
				"--socket="+filepath.Join(s.dir, "socket"), "--pid-file="+filepath.Join(s.dir, "pid")), more...)
		},
		ready: func(ctx context.Context, s *server) error { return mariaDBReady(ctx, mariaDBName(s.address()), s.dir) },
		quit:  syscall.SIGKILL, // it takes its time for any other
	})
}

func mariaDBName(address string) string { return "root@tcp(" + address + ")/" + mariaDBDatabase }

// mariaDBProgram is the command for a small server.
func mariaDBProgram(s *server, from string) []string {
	return append([]string{
		"LD_LIBRARY_PATH=" + filepath.Join(from, "lib"), filepath.Join(from, "mariadbd"), "--no-defaults",
		"--datadir=" + filepath.Join(s.dir, "data"), "--tmpdir=" + s.dir,
		"--lc-messages-dir=" + from, "--character-sets-dir=" + filepath.Join(from, "charsets"),
	}, mariaDBSmall...)
}

var mariaDBSmall = []string{"--innodb-buffer-pool-size=32M", "--innodb-log-file-size=8M", "--performance-schema=OFF"}

// mariaDBInstall makes the system tables.
func mariaDBInstall(ctx context.Context, s *server, from string) error {
	script, err := binaries.MariaDBTables(mariaDBDatabase)
	if err != nil {
		return err
	}
	path := filepath.Join(s.dir, "install.sql")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		return err
	}
	if err := s.run(ctx, "/bin/mkdir", filepath.Join(s.dir, "data")); err != nil { // whose owner is the account
		return err
	}
	arguments := append([]string{"-c", `exec env "$@" < "$0"`, path}, mariaDBProgram(s, from)...)
	return s.run(ctx, "/bin/sh", append(arguments, "--bootstrap")...)
}

// mariaDBReady connects and compares how the data folder begins, which no other server
// has.
func mariaDBReady(ctx context.Context, name, dir string) error {
	db, err := sql.Open("mysql", name)
	if err != nil {
		return err
	}
	defer db.Close()
	var is string
	if err := db.QueryRowContext(ctx, "select @@datadir").Scan(&is); err != nil {
		return err
	}
	if !strings.HasPrefix(is, dir) {
		return errors.New("another MariaDB answers on its port")
	}
	return nil
}
