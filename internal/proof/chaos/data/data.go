// Package data writes to data in an election's own store, through the guard of its
// backend, and reads what stands there.
package data

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/postgres"
)

// A Write is one write to the data of an election.
type Write struct {
	Token     elector.Token
	Candidate string
	Number    uint64
}

func (w Write) String() string { return fmt.Sprintf("%d %s %d", w.Token, w.Candidate, w.Number) }

func parse(line string) (w Write, err error) {
	if _, err = fmt.Sscan(line, &w.Token, &w.Candidate, &w.Number); err != nil {
		err = fmt.Errorf("%q in the data is no write: %w", line, err)
	}
	return w, err
}

// Data is data in one store. Its methods may be called at the same time. They
// block until the store has answered, or ctx ends.
type Data interface {
	// Write adds a write to the data of the lease's election. It returns
	// ErrStale if the store's guard refused it.
	Write(ctx context.Context, lease backends.Lease, election string, w Write) error

	// Read returns the writes to the data of an election, in the store's own
	// order.
	Read(ctx context.Context, election string) ([]Write, error)

	Close() error
}

// Open returns the data in the store of a URL, nil if the store has none. It does
// not connect yet.
func Open(store string) (Data, error) {
	u, err := url.Parse(store)
	if err != nil {
		return nil, errors.New("the URL of the store cannot be read") // the error may hold a password
	}
	switch u.Scheme {
	case "etcd":
		return &etcdData{url: u}, nil
	case "consul":
		return openConsul(u), nil
	case "postgres":
		pool, err := pgxpool.New(context.Background(), store)
		if err != nil {
			return nil, errors.New("the URL is not one of PostgreSQL")
		}
		return postgresData{pool}, nil
	case "nats":
		return openNATS(u), nil
	case "redis":
		return openRedis(u), nil
	case "mysql":
		return openMySQL(u)
	}
	return nil, nil
}

// An etcdData has a key for each write, next to the records. No two are made in one
// revision.
type etcdData struct {
	url    *url.URL
	mutex  sync.Mutex
	client *clientv3.Client // nil until connected
}

// connect connects when first needed, because a client with a password signs in
// before it is returned.
func (d *etcdData) connect(ctx context.Context) (*clientv3.Client, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.client != nil || ctx.Err() != nil {
		return d.client, ctx.Err()
	}
	password, _ := d.url.User.Password()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(d.url.Host, ","),
		DialTimeout: time.Second,
		Username:    d.url.User.Username(),
		Password:    password,
		Logger:      zap.NewNop(),
	})
	if err == nil {
		d.client = client
	}
	return client, err
}

func (*etcdData) prefix(election string) string { return etcd.DefaultPrefix + "data/" + election + "/" }

func (d *etcdData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	client, err := d.connect(ctx)
	if err != nil {
		return err
	}
	put := clientv3.OpPut(fmt.Sprintf("%s%s-%d", d.prefix(election), w.Candidate, w.Number), w.String())
	_, err = etcd.Commit(ctx, client, lease, put)
	return err
}

func (d *etcdData) Read(ctx context.Context, election string) (all []Write, err error) {
	client, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	answer, err := client.Get(ctx, d.prefix(election), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, err
	}
	for _, kv := range answer.Kvs {
		w, err := parse(string(kv.Value))
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (d *etcdData) Close() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.client == nil {
		return nil
	}
	return d.client.Close()
}

// A postgresData has a row for each election. Its lock puts the writes into the
// order of their commits.
type postgresData struct{ pool *pgxpool.Pool }

// Table creates what PostgreSQL needs, for a role.
func Table(role string) string {
	return "create table data (election text primary key, writes text[] not null); grant select, insert, update on data to " + role
}

const appending = `insert into data values ($1, array[$2]) on conflict (election) do update set writes = data.writes || excluded.writes`

func (d postgresData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	return postgres.Transact(ctx, d.pool, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, appending, election, w.String())
		return err
	})
}

func (d postgresData) Read(ctx context.Context, election string) (all []Write, err error) {
	var lines []string
	err = d.pool.QueryRow(ctx, "select writes from data where election = $1", election).Scan(&lines)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	for _, line := range lines {
		w, err := parse(line)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func (d postgresData) Close() error {
	d.pool.Close()
	return nil
}
