package stores

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// mySQLSecured is the database that User may use when Admin has granted that.
const mySQLSecured = "secured"

// startMySQL starts MariaDB. URL is of an administrator without a password, in an empty
// database, and has the table created. PasswordURL is another database, in which User
// may do nothing until Admin grants more.
func startMySQL(ctx context.Context, m manner) (*Store, error) { return startMySQLWith(ctx, m) }

// startMySQLWith starts MariaDB with more arguments.
func startMySQLWith(ctx context.Context, m manner, more ...string) (*Store, error) {
	s, err := mariaDBServer(ctx, m, more...)
	if err != nil {
		return nil, err
	}
	return mySQLStore(ctx, &Store{How: mariaDBHow(s), Address: s.address(), PID: s.pid, server: s})
}

// mySQLStore makes what startMySQL promises, on a server with the database of the tests.
func mySQLStore(ctx context.Context, store *Store) (*Store, error) {
	store.Kind = MySQL
	store.URL = "mysql://root@" + store.Address + "/" + mariaDBDatabase + "?create=true"
	store.PasswordURL = "mysql://" + store.Address + "/" + mySQLSecured
	store.Admin = Login{User: "root"}
	store.User = Login{"tester", rand.Text()}
	err := store.MySQLExec(ctx, "create database "+mySQLSecured,
		// Random letters and digits: nothing to quote.
		"create user "+store.User.User+"@'%' identified by '"+store.User.Password+"'")
	if err != nil {
		return nil, errors.Join(err, store.Stop())
	}
	return store, nil
}

// MySQLName is the data source name of the store's database for its administrator, for
// the driver "mysql" of database/sql.
func (s *Store) MySQLName() string { return mariaDBName(s.Address) }

// MySQLExec runs statements as the server's administrator.
func (s *Store) MySQLExec(ctx context.Context, statements ...string) error {
	db, err := sql.Open("mysql", s.MySQLName())
	if err != nil {
		return err
	}
	defer db.Close()
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err) // a password may follow
		}
	}
	return nil
}
