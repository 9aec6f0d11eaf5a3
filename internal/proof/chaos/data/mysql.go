package data

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/mysql"
)

// A mySQLData has a row for each election. Its lock puts the writes into the order of
// their commits.
type mySQLData struct{ db *sql.DB }

// MySQLTable creates what MySQL needs.
const MySQLTable = "create table data (election varbinary(255) not null primary key, writes longblob not null) engine = InnoDB"

func openMySQL(u *url.URL) (Data, error) {
	config := gomysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = u.User.Username(), "tcp", u.Host, strings.Trim(u.Path, "/")
	config.Passwd, _ = u.User.Password()
	config.InterpolateParams, config.Logger = true, &gomysql.NopLogger{}
	server, err := gomysql.NewConnector(config)
	if err != nil {
		return nil, errors.New("the URL is not one of MySQL")
	}
	return mySQLData{sql.OpenDB(server)}, nil
}

func (d mySQLData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	return mysql.Transact(ctx, d.db, lease, func(tx *sql.Tx) error {
		line := w.String() + "\n"
		_, err := tx.ExecContext(ctx, "insert into data values (?, ?) on duplicate key update writes = concat(writes, ?)", election, line, line)
		return err
	})
}

func (d mySQLData) Read(ctx context.Context, election string) (all []Write, err error) {
	var lines string
	err = d.db.QueryRowContext(ctx, "select writes from data where election = ?", election).Scan(&lines)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return nil, err
	}
	for line := range strings.Lines(lines) {
		w, err := parse(line)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (d mySQLData) Close() error {
	d.db.Close() // its error is that of a connection that was broken before
	return nil
}
