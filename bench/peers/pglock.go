package peers

import (
	"context"
	"database/sql"
	"encoding/binary"
	"net/url"
	"sync/atomic"
	"time"

	"cirello.io/pglock"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"

	"github.com/elector-go/elector/internal/proof/stores"
)

var postgreses = []Library{
	electorOn(stores.Postgres),
	pgLock("pglock", "postgres", "lib/pq, the driver that it documents", pglock.New),
	pgLock("pglock/pgx", "pgx", "pgx's database/sql driver, through UnsafeNew", pglock.UnsafeNew),
}

func pgLock(name, driver, which string, client func(*sql.DB, ...pglock.ClientOption) (*pglock.Client, error)) Library {
	return Library{
		Name:   name,
		Module: "cirello.io/pglock",
		Store:  stores.Postgres,
		Belief: "the context that Client.Do gives has not ended",
		Settings: "lease duration is the TTL, a heartbeat every quarter of it, as the defaults 20 and 5 s; " + which +
			"; opening makes the table if it is missing, which New does not; many locks of a process share a pool of 16 connections at most",
		// One timeout for the number and the write.
		Slowest: func(ttl time.Duration) time.Duration { return ttl },
		Open: func(ctx context.Context, c Config) (Candidate, error) {
			return openPGLock(c, driver, client)
		},
	}
}

type pgLockCandidate struct {
	db      *sql.DB
	client  *pglock.Client
	name    string
	life    context.Context
	end     context.CancelFunc
	resign  chan struct{}
	done    chan error // gets what Do returned
	began   atomic.Bool
	ran     chan struct{} // closed when Do, if it began, has returned
	leading atomic.Pointer[context.Context]
}

func openPGLock(c Config, driver string, client func(*sql.DB, ...pglock.ClientOption) (*pglock.Client, error)) (Candidate, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, err
	}
	if q := u.Query(); !q.Has("sslmode") {
		q.Set("sslmode", "disable") // lib/pq insists on TLS otherwise
		u.RawQuery = q.Encode()
	}
	db, err := sql.Open(driver, u.String())
	if err != nil {
		return nil, err
	}
	p := &pgLockCandidate{db: db, name: c.Name, resign: make(chan struct{}, 1), done: make(chan error, 1), ran: make(chan struct{})}
	p.client, err = client(db,
		pglock.WithLeaseDuration(c.TTL),
		pglock.WithHeartbeatFrequency(c.TTL/4),
		pglock.WithOwner(c.ID),
		pglock.WithCustomTable(c.Name), // no two elections make one table at once
	)
	if err == nil {
		err = p.client.TryCreateTable()
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	p.life, p.end = context.WithCancel(context.Background())
	return p, nil
}

func (p *pgLockCandidate) Campaign(ctx context.Context) error {
	won := make(chan struct{})
	p.began.Store(true)
	go func() {
		defer close(p.ran)
		p.done <- p.client.Do(p.life, p.name, func(ctx context.Context, _ *pglock.Lock) error {
			p.leading.Store(&ctx)
			close(won)
			select {
			case <-p.resign:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	select {
	case <-won:
		return nil
	case err := <-p.done:
		p.done <- err
		return err
	case <-ctx.Done():
		p.end()
		return ctx.Err()
	}
}

func (p *pgLockCandidate) Leads() bool {
	ctx := p.leading.Load()
	return ctx != nil && (*ctx).Err() == nil
}

// Renewal is the name of the lock as an argument of the write, after its length.
// The number to write is asked for by a statement before, without arguments.
func (p *pgLockCandidate) Renewal() []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(p.name))), p.name...)
}

func (p *pgLockCandidate) Resign(ctx context.Context) error {
	p.leading.Store(nil)
	p.resign <- struct{}{}
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close waits for Do, which tells the store if it can: lib/pq may hang when the
// store does.
func (p *pgLockCandidate) Close() error {
	p.end()
	if p.began.Load() {
		select {
		case <-p.ran:
		case <-time.After(closingTime):
		}
	}
	return p.db.Close()
}
