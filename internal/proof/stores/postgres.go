package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const (
	postgresAdmin   = "postgres" // and the database of that name
	postgresSecured = "secured"  // the database that wants passwords
)

// postgresAccess lets everybody in on trust who comes from the addresses, but
// for users other than the administrator in one database.
func postgresAccess(from string) string {
	return `# type database user address method
host all ` + postgresAdmin + ` ` + from + ` trust
host ` + postgresSecured + ` all ` + from + ` scram-sha-256
host all all ` + from + ` trust
host replication ` + postgresAdmin + ` ` + from + ` trust
`
}

// startPostgres starts PostgreSQL. URL is a database where no password is
// needed, with the table of elections; PasswordURL is one that wants User's, without
// a table, in which User may connect and nothing else until Admin grants more.
func startPostgres(ctx context.Context, m manner) (*Store, error) {
	bin, fetched, err := binaries.Postgres()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores, or install PostgreSQL", err)
	}
	name, err := postgresName(ctx, bin)
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, recipe{
		name:    name,
		program: filepath.Join(bin, "postgres"),
		account: account,
		prepare: func(ctx context.Context, s *server) error {
			return postgresInit(ctx, s, filepath.Join(bin, "initdb"))
		},
		arguments: func(s *server) []string { return postgresArguments(m, s) },
		ready:     func(ctx context.Context, s *server) error { return postgresReady(ctx, s.address(), postgresData(s)) },
		quit:      syscall.SIGQUIT, // its "immediate shutdown", which frees shared memory
	})
	if err != nil {
		return nil, err
	}
	from := "installed in " + bin
	if fetched {
		from = "fetched"
	}
	return postgresStore(ctx, s.address(), "local process "+name+" ("+from+")", s)
}

// PostgresStandby starts a hot standby of a server that the tests started, which
// follows it without holding it up.
func PostgresStandby(ctx context.Context, primary *Store) (*Store, error) {
	bin, _, err := binaries.Postgres()
	if err != nil {
		return nil, err
	}
	account, err := unprivileged()
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, recipe{
		name:    "PostgreSQL, a hot standby",
		program: filepath.Join(bin, "postgres"),
		account: account,
		prepare: func(ctx context.Context, s *server) error {
			if err := postgresCopy(ctx, primary, postgresData(s)); err != nil {
				return fmt.Errorf("copying the primary: %w", err)
			}
			return s.owns(postgresData(s))
		},
		arguments: func(s *server) []string { return postgresArguments(quick, s) },
		ready:     func(ctx context.Context, s *server) error { return postgresReady(ctx, s.address(), postgresData(s)) },
		quit:      syscall.SIGQUIT,
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind: Postgres, How: "a hot standby of " + primary.How, Address: s.address(), PID: s.process(), server: s,
		URL: strings.Replace(primary.URL, primary.Address, s.address(), 1),
	}, nil
}

// postgresStore makes the database that wants passwords, and stops the server
// if it cannot.
func postgresStore(ctx context.Context, address, how string, server runner) (*Store, error) {
	store := &Store{
		Kind:        Postgres,
		How:         how,
		URL:         fmt.Sprintf("postgres://%s@%s/%s", postgresAdmin, address, postgresAdmin),
		Address:     address,
		PID:         server.process(),
		Admin:       Login{User: postgresAdmin},
		User:        Login{"tester", rand.Text()},
		PasswordURL: fmt.Sprintf("postgres://%s/%s", address, postgresSecured),
		server:      server,
	}
	if err := postgresSecure(ctx, address, store.User); err != nil {
		return nil, errors.Join(fmt.Errorf("making the database that wants passwords: %w", err), store.Stop())
	}
	if err := creates(ctx, store.URL); err != nil {
		return nil, errors.Join(fmt.Errorf("making the table: %w", err), store.Stop())
	}
	return store, nil
}

// creates makes what keeps the records, as somebody does once for a new store.
func creates(ctx context.Context, storeURL string) error {
	b, err := backends.Open(ctx, storeURL+"?create=true")
	if err != nil {
		return err
	}
	return b.Close()
}

// postgresName returns "PostgreSQL" and the version of the programs in bin.
func postgresName(ctx context.Context, bin string) (string, error) {
	// It says "postgres (PostgreSQL) 15.4 (some build)".
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	fields := strings.Fields(string(out))
	if err != nil || len(fields) < 3 {
		return "", fmt.Errorf("postgres in %s does not tell its version: %w", bin, err)
	}
	return "PostgreSQL " + fields[2], nil
}

func postgresData(s *server) string { return filepath.Join(s.dir, "data") }

func postgresInit(ctx context.Context, s *server, initdb string) error {
	err := s.run(ctx, initdb, "-D", postgresData(s), "-U", postgresAdmin,
		"-A", "trust", "--no-sync", "--encoding=UTF8", "--locale=C")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(postgresData(s), "pg_hba.conf"), []byte(postgresAccess("127.0.0.1/32")), 0o600)
}

func postgresArguments(m manner, s *server) []string {
	return append([]string{"-D", postgresData(s)}, postgresSet(m,
		"listen_addresses=127.0.0.1",
		"port="+strconv.Itoa(s.port),
		"unix_socket_directories=",
		"dynamic_shared_memory_type=mmap", // in its folder, so that a kill leaves none
	)...)
}

// postgresSet are arguments for the settings, and for those that all tests
// want.
func postgresSet(m manner, settings ...string) (args []string) {
	if m == quick {
		settings = append(settings, "fsync=off", "full_page_writes=off", "shared_buffers=16MB")
	}
	for _, setting := range append(settings,
		"track_commit_timestamp=on", // the order of commits, for storms
		"log_min_messages=warning",
		"log_min_error_statement=panic", // statements may hold passwords
	) {
		args = append(args, "-c", setting)
	}
	return args
}

// postgresReady connects and compares the data folder, which no other server
// has; dir is empty where any will do.
func postgresReady(ctx context.Context, address, dir string) error {
	conn, err := postgresConnect(ctx, address, postgresAdmin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var is string
	if err := conn.QueryRow(ctx, "SHOW data_directory").Scan(&is); err != nil {
		return err
	}
	if dir != "" && is != dir {
		return errors.New("another PostgreSQL answers on its port")
	}
	return nil
}

func postgresSecure(ctx context.Context, address string, user Login) error {
	conn, err := postgresConnect(ctx, address, postgresAdmin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range []string{
		"CREATE DATABASE " + postgresSecured,
		// Random letters and digits: nothing to quote.
		"CREATE ROLE " + user.User + " LOGIN PASSWORD '" + user.Password + "'",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	secured, err := postgresConnect(ctx, address, postgresSecured)
	if err != nil {
		return err
	}
	defer secured.Close(ctx)
	// Before PostgreSQL 15 everybody may create tables.
	_, err = secured.Exec(ctx, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
	return err
}

func postgresConnect(ctx context.Context, address, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgresAdmin, address, database))
}
