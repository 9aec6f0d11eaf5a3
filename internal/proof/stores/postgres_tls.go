package stores

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/elector-go/elector/internal/testca"
)

// PostgresServes gives a server that the tests started a certificate for 127.0.0.1, and the
// authority of its clients. Connections that are open stay.
func PostgresServes(ctx context.Context, s *Store, own, clients *testca.Authority) error {
	server := s.server.(*server)
	cert, key := testca.Pair(own.Issue(time.Now().Add(24*time.Hour), "127.0.0.1"))
	settings := []string{"alter system set ssl = on"}
	for setting, content := range map[string][]byte{"ssl_cert_file": cert, "ssl_key_file": key, "ssl_ca_file": clients.PEM()} {
		file := filepath.Join(server.dir, setting)
		if err := errors.Join(os.WriteFile(file+".new", content, 0o600), server.owns(file+".new"), os.Rename(file+".new", file)); err != nil {
			return err
		}
		settings = append(settings, "alter system set "+setting+" = '"+file+"'")
	}
	return PostgresExec(ctx, s, append(settings, "select pg_reload_conf()")...)
}

// PostgresAdmits lets users in by these rules of pg_hba.conf, which come before all others.
func PostgresAdmits(ctx context.Context, s *Store, rules ...string) error {
	file := filepath.Join(postgresData(s.server.(*server)), "pg_hba.conf")
	content := strings.Join(rules, "\n") + "\n" + postgresAccess("127.0.0.1/32")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return err
	}
	return PostgresExec(ctx, s, "select pg_reload_conf()")
}

// PostgresExec executes statements as the administrator.
func PostgresExec(ctx context.Context, s *Store, statements ...string) error {
	conn, err := postgresConnect(ctx, s.Address, postgresAdmin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}
