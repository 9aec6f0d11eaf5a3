package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// postgresCopy makes, in dir, the data folder of a standby of a server that runs here, by
// PostgreSQL's own steps for a copy by hand: packed servers have no pg_basebackup.
func postgresCopy(ctx context.Context, primary *Store, dir string) error {
	data := postgresData(primary.server.(*server))
	conn, err := pgx.Connect(ctx, primary.URL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "select pg_backup_start('standby', true)"); err != nil {
		return err
	}
	if err := copyData(data, dir, func(below string) bool { return !strings.HasPrefix(below, "pg_wal"+string(filepath.Separator)) }); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, "select labelfile from pg_backup_stop(false)").Scan(&label); err != nil {
		return err
	}
	// What was written meanwhile is in the log.
	if err := copyData(filepath.Join(data, "pg_wal"), filepath.Join(dir, "pg_wal"), func(string) bool { return true }); err != nil {
		return err
	}
	settings, err := os.OpenFile(filepath.Join(dir, "postgresql.auto.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	config := conn.Config()
	_, err = fmt.Fprintf(settings, "primary_conninfo = 'host=%s port=%d user=%s'\n", config.Host, config.Port, config.User)
	return errors.Join(err, settings.Close(),
		os.WriteFile(filepath.Join(dir, "backup_label"), []byte(label), 0o600),
		os.WriteFile(filepath.Join(dir, "standby.signal"), nil, 0o600))
}

// copyData copies a folder of a server that runs, but for what belongs to its process. A
// file that goes away meanwhile is left out.
func copyData(from, to string, wanted func(below string) bool) error {
	return filepath.WalkDir(from, func(at string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && at != from {
			return nil
		}
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, at)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, below), 0o700)
		case strings.HasPrefix(d.Name(), "postmaster.") || !wanted(below):
			return nil
		}
		return copyFile(at, filepath.Join(to, below))
	})
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
