package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
)

// A Backend keeps records in one table. Open and New make it.
type Backend struct {
	pool     *pgxpool.Pool
	ownPool  bool
	store    string // for errors, without a password
	table    table
	database string
	role     string
	life     context.Context // ends with Close
	end      context.CancelFunc
	once     sync.Once

	doubts doubts
}

var _ backends.Batcher = (*Backend)(nil)

// row joins an election's row to what comes before it, which is always there and
// so always tells whether the server takes writes. Texts are cut just above what
// a valid record has: whatever somebody put into the table, it takes little
// memory.
const row = `left join lateral (
	select name, schema, left(holder, 4097), token, ttl, renew_every, left(attempt, 128), left(value, 4097), left(ext, 16385)
	from %[1]s where name = $1`

// readRow reads the row. lockRow also locks it, which is a commit.
const (
	readRow = `select current_setting('transaction_read_only'), '', '', e.* from (select 1) as one ` + row + `) as e on true`
	lockRow = `select current_setting('transaction_read_only'), ` + durably + `, e.* from (select 1) as one ` + row + ` and ` + impatiently + ` for update) as e on true`
)

// Load implements [backends.Backend]. Besides the errors that it documents it
// returns ErrReadOnly from a standby, ErrUnavailable from a server that does
// not answer, ErrDenied and ErrMisconfigured.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	doubtful, ok := b.doubts.about(name)
	if !ok {
		return b.read(ctx, name, false)
	}
	r, err := b.read(ctx, name, true)
	if code(err) == lockNotAvailable {
		// What the doubtful write was to replace is still there: it was not
		// applied so far, which is the truth. Anything else may be its work.
		if r, err := b.read(ctx, name, false); err == nil && r.Version == doubtful {
			return r, nil
		}
	}
	if err == nil && r.Version != doubtful {
		b.doubts.end(name, doubtful)
	}
	return r, err
}

// read returns the record as its row says, and locks the row to make sure that
// it is durable.
func (b *Backend) read(ctx context.Context, name string, durable bool) (backends.Record, error) {
	sql, queryRow := readRow, b.queryRow
	if durable {
		sql, queryRow = lockRow, b.queryRowImpatiently
	}
	var readOnly string
	var found, holder, attempt, value, ext *string
	var schema *int32
	var token, ttl, renewEvery *int64
	_, err := queryRow(ctx, fmt.Sprintf(sql, b.table.quoted()), []any{name}, &readOnly, nil, nil,
		&found, &schema, &holder, &token, &ttl, &renewEvery, &attempt, &value, &ext)
	if err == nil && readOnly != "off" {
		err = errReadOnly
	}
	if err != nil {
		return backends.Record{}, b.explain(ctx, "reading election "+name, err)
	}
	if found == nil {
		return backends.Record{}, nil
	}
	if schema == nil || holder == nil || token == nil || ttl == nil || renewEvery == nil || attempt == nil || value == nil || ext == nil {
		return backends.Record{}, backends.Foreign("it has a NULL column")
	}
	if err := backends.CheckSchema(strconv.Itoa(int(*schema))); err != nil {
		return backends.Record{}, err
	}
	parsed, err := backends.ParseAttempt(*attempt)
	if err != nil {
		return backends.Record{}, backends.Foreign("%v", err)
	}
	r := backends.Record{Holder: *holder, Token: uint64(*token), TTL: time.Duration(*ttl),
		RenewEvery: time.Duration(*renewEvery), Attempt: parsed, Value: *value, Extensions: backends.Extensions(*ext)}
	if err := r.Validate(); err != nil {
		return backends.Record{}, err
	}
	return versioned(name, r), nil
}

// durably raises the durability of the statement that it is part of, up to and
// including its commit, and never lowers it. It also makes sure that we are
// told when the wait for a standby is broken off.
const durably = `set_config('client_min_messages', 'warning', true), set_config('synchronous_commit',
	case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then 'on'
	else current_setting('synchronous_commit') end, true)`

// impatiently bounds how long a statement waits for the row that this is a
// condition of: $2 says how long. The condition holds, and is looked at before
// the row is locked. A statement that would wait longer is refused, and nothing of
// it was applied.
const impatiently = `set_config('lock_timeout', $2, true) <> ''`

const (
	notify = `, case when $11 then pg_notify($12, $1)::text end`

	insert = `insert into %s (name, schema, holder, token, ttl, renew_every, attempt, value, ext)
select $1::text, $3::integer, $4::text, $5::bigint, $6::bigint, $7::bigint, $8::text, $9::text, $10::text where ` + impatiently + `
on conflict (name) do nothing
returning ` + durably + notify

	update = `update %s set schema = $3, holder = $4, token = $5, ttl = $6, renew_every = $7, attempt = $8, value = $9, ext = $10
where name = $1 and attempt = $13 and schema = $3 and holder = $14 and token = $15 and ttl = $16 and renew_every = $17 and value = $18 and ext = $19
	and ` + impatiently + `
returning ` + durably + notify
)

// Swap implements [backends.Backend], with the further errors of Load.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	if err := backends.CheckName(name); err != nil {
		return backends.Record{}, err
	}
	changed := prev.Holder != next.Holder || prev.Token != next.Token || tells(prev, next)
	next = versioned(name, next)
	args := []any{name, backends.Schema, next.Holder, int64(next.Token), int64(next.TTL), int64(next.RenewEvery),
		next.Attempt.String(), next.Value, string(next.Extensions), changed, b.table.channel()}
	sql := insert
	if prev.Exists() {
		was, err := backends.Decode(name, []byte(prev.Version))
		if err != nil {
			return backends.Record{}, fmt.Errorf("%w (and the version to replace is none of this election's)", backends.ErrConflict)
		}
		sql = update
		args = append(args, was.Attempt.String(), was.Holder, int64(was.Token), int64(was.TTL), int64(was.RenewEvery), was.Value, string(was.Extensions))
	}
	sent, err := b.queryRowImpatiently(ctx, fmt.Sprintf(sql, b.table.quoted()), args, nil, nil, nil)
	switch {
	case err == nil:
		b.doubts.end(name, prev.Version)
		return next, nil
	case errors.Is(err, pgx.ErrNoRows) || code(err) == "40001":
		return backends.Record{}, backends.ErrConflict
	case sent && code(err) != lockNotAvailable:
		b.doubts.add(name, prev.Version)
	}
	return backends.Record{}, b.explain(ctx, "writing election "+name, err)
}

// tells reports whether a renewal is news.
func tells(prev, next backends.Record) bool {
	return prev.Value != next.Value || prev.Extensions != next.Extensions
}

// versioned sets the record's version, which is all that its row holds: the
// attempt alone would do among ourselves, and this also sees what somebody
// else has changed by hand.
func versioned(name string, r backends.Record) backends.Record {
	r.Version = backends.Version(backends.Encode(name, r))
	return r
}

// queryRow runs one autocommit statement that returns a row. It says whether
// anything of it may have reached the server.
func (b *Backend) queryRow(ctx context.Context, sql string, args []any, dest ...any) (sent bool, err error) {
	return b.run(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sql, append([]any{oneTrip}, args...)...).Scan(dest...)
	})
}

// queryRowImpatiently is queryRow for a statement with that condition.
func (b *Backend) queryRowImpatiently(ctx context.Context, sql string, args []any, dest ...any) (sent bool, err error) {
	return b.run(ctx, func(ctx context.Context, conn *pgxpool.Conn) error {
		args := append([]any{oneTrip, args[0], lockTimeout(ctx)}, args[1:]...)
		return conn.QueryRow(ctx, sql, args...).Scan(dest...)
	})
}

// lockTimeout leaves time to read, and to try again.
func lockTimeout(ctx context.Context) string {
	most := 300 * time.Millisecond
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/4)
	}
	return fmt.Sprintf("%dms", max(most.Milliseconds(), 1)) // 0 would be for ever
}

// oneTrip makes a query one round trip, and no prepared statement that a pooler
// would look for on another server connection.
const oneTrip = pgx.QueryExecModeExec

// run makes one query on a connection. It says whether anything of it may have
// reached the server.
func (b *Backend) run(ctx context.Context, query func(context.Context, *pgxpool.Conn) error) (sent bool, err error) {
	if b.life.Err() != nil {
		return false, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.life, cancel)()

	conn, err := b.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	notes := conn.Conn().PgConn().CustomData()
	delete(notes, unreplicated)
	err = query(ctx, conn)
	if err == nil && notes[unreplicated] != nil {
		err = errUnreplicated
	}
	cancelled := errors.Is(err, context.Canceled) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	if b.ownPool && conn.Conn().IsClosed() && !cancelled {
		// The server restarted or the network is gone: the idle connections
		// are dead too. Finding out one call at a time could cost a lease.
		b.pool.Reset()
	}
	return true, err
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.store, MaxBatch: maxBatch}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the pool, unless the pool was given to New. It blocks until the connections
// are closed: at once, or up to 15 s in a network gone dark.
func (b *Backend) Close() error {
	b.once.Do(func() {
		b.end()
		if b.ownPool {
			b.pool.Close()
		}
	})
	return nil
}
