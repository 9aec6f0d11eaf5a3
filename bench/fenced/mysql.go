package fenced

import (
	"context"
	"database/sql"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends/mysql"
	"github.com/elector-go/elector/fence/fencesql"
)

func mysqls(ctx context.Context, t *target) ([]pair, error) {
	config, err := gomysql.ParseDSN(t.store.MySQLName())
	if err != nil {
		return nil, err
	}
	config.Addr, config.InterpolateParams = t.address, true
	server, err := gomysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(server)
	t.closers = append(t.closers, func() { db.Close() })
	for _, statement := range []string{"create table if not exists fenced (id int primary key, n int)", "replace into fenced values (1, 0)"} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, err
		}
	}
	const update = "update fenced set n = ? where id = 1"
	either, err := fenceSQL(ctx, t, db, fencesql.MySQL, update)
	if err != nil {
		return nil, err
	}
	return append(either, pair{"mysql.Transact", plainly(db, update), func(ctx context.Context, n int) error {
		return mysql.Transact(ctx, db, t.lease, func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, update, n); return err })
	}}), nil
}
