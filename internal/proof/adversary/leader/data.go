package main

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/proof/adversary/wire"
)

// data is what the leaders write.
type data interface {
	// guarded returns ErrStale if the guard has refused.
	guarded(context.Context, backends.Lease, wire.Write) error
	plain(context.Context, wire.Write) error
	close() error
}

func open(t wire.Task) (data, error) {
	switch t.Kind {
	case wire.Etcd:
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{strings.TrimPrefix(t.Data, "etcd://")}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
		return &etcdData{client: client, task: t}, err
	case wire.Postgres, wire.SQL:
		config, err := pgxpool.ParseConfig(t.Data)
		if err != nil {
			return nil, err
		}
		config.MaxConns = 2
		pool, err := pgxpool.NewWithConfig(context.Background(), config)
		if err != nil {
			return nil, err
		}
		db, err := sql.Open("pgx", t.Data)
		if err != nil {
			return nil, err
		}
		table, err := fencesql.New(fencesql.PostgreSQL, "fences")
		return sqlData{t, pool, db, table}, err
	case wire.Fence:
		return service{t}, nil
	}
	return nil, fmt.Errorf("there is no data of kind %q", t.Kind)
}

// An etcdData has a key for each write.
type etcdData struct {
	client *clientv3.Client
	task   wire.Task
	number atomic.Int64
}

func (d *etcdData) put(folder string, w wire.Write) clientv3.Op {
	return clientv3.OpPut(fmt.Sprintf("%s/%s/%s-%d-%d", folder, d.task.Election, d.task.Candidate, w.Token, d.number.Add(1)), w.String())
}

func (d *etcdData) guarded(ctx context.Context, lease backends.Lease, w wire.Write) error {
	_, err := etcd.Commit(ctx, d.client, lease, d.put("guarded", w))
	return err
}

func (d *etcdData) plain(ctx context.Context, w wire.Write) error {
	_, err := d.client.Do(ctx, d.put("plain", w))
	return err
}

func (d *etcdData) close() error { return d.client.Close() }

// A sqlData has a row for each write.
type sqlData struct {
	task  wire.Task
	pool  *pgxpool.Pool
	db    *sql.DB
	table *fencesql.Table
}

const insert = "insert into written values ($1, $2, $3)"

func (d sqlData) guarded(ctx context.Context, lease backends.Lease, w wire.Write) error {
	row := []any{d.task.Election, true, w.String()}
	work := func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, insert, row...)
		return err
	}
	switch {
	case d.task.Kind == wire.SQL:
		return d.table.Transact(ctx, d.db, lease, work)
	case w.Point == wire.Guarded:
		return postgres.TransactDB(ctx, d.db, lease, work)
	}
	return postgres.Transact(ctx, d.pool, lease, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, insert, row...)
		return err
	})
}

func (d sqlData) plain(ctx context.Context, w wire.Write) error {
	_, err := d.db.ExecContext(ctx, insert, d.task.Election, false, w.String())
	return err
}

func (d sqlData) close() error {
	d.pool.Close()
	return d.db.Close()
}

// A service takes writes over HTTP.
type service struct{ task wire.Task }

func (s service) guarded(ctx context.Context, lease backends.Lease, w wire.Write) error {
	return s.post(ctx, &fencehttp.Transport{Lease: lease}, "guarded", w)
}

func (s service) plain(ctx context.Context, w wire.Write) error {
	return s.post(ctx, http.DefaultTransport, "plain", w)
}

func (s service) post(ctx context.Context, through http.RoundTripper, path string, w wire.Write) error {
	query := url.Values{"candidate": {s.task.Candidate}, "write": {w.String()}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.task.Data+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	answer, err := (&http.Client{Transport: through}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if _, refused := fencehttp.Refused(answer); refused {
		return elector.ErrStale
	}
	if err == nil && answer.StatusCode != http.StatusNoContent {
		err = fmt.Errorf("status %d: %s", answer.StatusCode, said)
	}
	return err
}

func (s service) close() error { return nil }
