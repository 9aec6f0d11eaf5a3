package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/listening"
	"github.com/elector-go/elector/internal/store"
)

// A Backend keeps records in one table. Open and New make it.
type Backend struct {
	base     *backends.Base
	pool     *pgxpool.Pool
	ownPool  bool // Close closes the pool
	noListen bool
	like     string // what the server is, if it only looks like PostgreSQL: see recognize
	guarded  bool   // the table has the index that Guard needs
	table    table
	database string
	role     string
	doubts   doubts
	reads    *store.Client  // of Watches
	active   sync.WaitGroup // of the reads of Watches that have ended
	hub      listening.Hub
}

var (
	_ backends.Watcher      = (*Backend)(nil)
	_ backends.BatchSwapper = (*Backend)(nil)
	_ backends.BatchLoader  = (*Backend)(nil)
	_ backends.Lister       = (*Backend)(nil)
	_ backends.Inspector    = (*Backend)(nil)
	_ backends.SQLGuarder   = (*Backend)(nil)
)

func newBackend(pool *pgxpool.Pool, ownPool bool, name string, t table) *Backend {
	c := pool.Config().ConnConfig
	b := &Backend{pool: pool, ownPool: ownPool, table: t, role: c.User, database: cmp.Or(c.Database, c.User)}
	b.base = backends.NewBase(name, b.classify)
	b.hub.Listen = b.listen
	b.reads = store.New(b, clock.System{}, &b.active)
	return b
}

// fields are the columns that hold a record, besides name and schema.
const fields = "holder, token, ttl, renew_every, attempt, value, ext"

// texts returns the values of fields.
func texts(r backends.Record) []string {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{r.Holder, number(int64(r.Token)), number(int64(r.TTL)), number(int64(r.RenewEvery)),
		r.Attempt.String(), r.Value, string(r.Extensions)}
}

// cells are the columns of a row to read. Texts are cut just above the bounds of a
// valid record, so that a read takes little memory, whatever the table holds.
const cells = `name, schema, left(holder, 4097), token, ttl, renew_every, left(attempt, 128), left(value, 4097), left(ext, 16385)`

// row joins an election's row to one that always exists and shows whether the
// server takes writes.
const row = `left join lateral (select ` + cells + ` from %[1]s where name = $1`

// readRow reads the row. lockRow also locks it, which is a commit.
const (
	readRow = `select ` + writable + `, '', '', e.* from (select 1) as one ` + row + `) as e on true`
	lockRow = `select ` + writable + `, ` + durably + `, e.* from (select 1) as one ` + row + ` and ` + impatiently + ` for no key update) as e on true`
)

// Load implements [backends.Backend]. Besides the errors that it documents, Load
// returns ErrReadOnly from a standby, ErrUnavailable from a server that does not
// answer, ErrDenied and ErrMisconfigured.
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) { return b.load(ctx, name) })
}

func (b *Backend) load(ctx context.Context, name string) (backends.Record, error) {
	if b.like != "" {
		return b.read(ctx, name, plainRow)
	}
	doubtful, ok := b.doubts.about(name)
	if !ok {
		return b.read(ctx, name, readRow)
	}
	r, err := b.read(ctx, name, lockRow) // makes sure that what it shows is durable
	if code(err) == lockNotAvailable {
		// If the version that the doubtful write was to replace is still there,
		// the write was not applied so far, and that version is the truth. Any
		// other state may come from the write.
		if r, err := b.read(ctx, name, readRow); err == nil && r.Version == doubtful {
			return r, nil
		}
	}
	if err == nil && r.Version != doubtful {
		b.doubts.end(name, doubtful)
	}
	return r, err
}

// refuses returns why a server cannot be used: it takes no writes, and may be behind,
// and this handle does not only read. Its connections are given up.
func (b *Backend) refuses(readOnly string) error {
	switch {
	case readOnly == "off" || b.base.ReadOnly():
		return nil
	case readOnly == followers:
		return errFollowers
	}
	b.leave()
	return errReadOnly
}

// leave gives up the connections of an own pool, once they are not in use, and the one that
// listens: new ones look at all hosts of the URL again, for one that takes writes.
func (b *Backend) leave() {
	if b.ownPool {
		b.pool.Reset()
		b.hub.Drop(errReadOnly)
	}
}

// read returns the record in the row that sql reads.
func (b *Backend) read(ctx context.Context, name, sql string) (backends.Record, error) {
	var readOnly string
	var row stored
	_, err := b.queryRow(ctx, b.statement(sql), []any{name}, append([]any{&readOnly, nil, nil}, row.dest()...)...)
	if err == nil {
		err = b.refuses(readOnly)
	}
	switch {
	case err != nil:
		return backends.Record{}, err
	case row.name == nil:
		return backends.Record{}, nil
	}
	return row.record(name)
}

// stored are the values of cells, nil for NULL.
type stored struct {
	name, holder, attempt, value, ext *string
	schema                            *int32
	token, ttl, renewEvery            *int64
}

func (s *stored) dest() []any {
	return []any{&s.name, &s.schema, &s.holder, &s.token, &s.ttl, &s.renewEvery, &s.attempt, &s.value, &s.ext}
}

// record returns the election's record in the row.
func (s *stored) record(name string) (none backends.Record, err error) {
	if s.schema == nil || s.holder == nil || s.token == nil || s.ttl == nil || s.renewEvery == nil || s.attempt == nil || s.value == nil || s.ext == nil {
		return none, backends.Foreign("it has a NULL column")
	}
	if err := backends.CheckSchema(strconv.Itoa(int(*s.schema))); err != nil {
		return none, err
	}
	parsed, err := backends.ParseAttempt(*s.attempt)
	if err != nil {
		return none, backends.Foreign("%v", err)
	}
	r := backends.Record{Holder: *s.holder, Token: uint64(*s.token), TTL: time.Duration(*s.ttl),
		RenewEvery: time.Duration(*s.renewEvery), Attempt: parsed, Value: *s.value, Extensions: backends.Extensions(*s.ext)}
	if err := r.Validate(); err != nil {
		return none, err
	}
	return versioned(name, r), nil
}

// List implements [backends.Lister], with the further errors of Load. It is one
// statement.
func (b *Backend) List(ctx context.Context) ([]string, error) {
	return b.base.List(ctx, func(ctx context.Context) (names []string, err error) {
		var readOnly string
		const sql = "select " + writable + ", array(select name from %s where name is not null)"
		_, err = b.queryRow(ctx, b.statement(sql), nil, &readOnly, &names)
		if err == nil {
			err = b.refuses(readOnly)
		}
		return names, err
	})
}

// durably raises the durability of its statement, up to and including the
// commit, and never lowers it. It also makes the server report when it breaks
// off the wait for a standby.
const durably = `set_config('client_min_messages', 'warning', true), set_config('synchronous_commit',
	case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then 'on'
	else current_setting('synchronous_commit') end, true)`

// impatiently bounds how long a statement waits for the row that this is a
// condition of; query sets $2 to the time. The condition is always true, and the
// server evaluates it before it locks the row. A statement that would wait
// longer is refused, and nothing of it was applied. Each lock holder that it waits for
// has that time, so guards that overlap can make it wait until its context ends.
const impatiently = `set_config('lock_timeout', $2, true) <> ''`

const (
	notify = `, case when $4 <> '' then set_config('lock_timeout', $4, true) || pg_notify($5, $1)::text end`

	given = `$6::text, $7::bigint, $8::bigint, $9::bigint, $10::text, $11::text, $12::text`

	insert = `insert into %s (name, schema, ` + fields + `)
select $1::text, $3::integer, ` + given + ` where ` + impatiently + `
on conflict do nothing
returning ` + durably + notify

	update = `update %s set (` + fields + `) = (` + given + `)
where name = $1 and schema = $3 and (` + fields + `) = ($13, $14, $15, $16, $17, $18, $19) and ` + impatiently + `
returning ` + durably + notify
)

// Swap implements [backends.Backend], with the further errors of Load.
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		insert, update, dest := insert, update, make([]any, 3)
		if b.like != "" {
			insert, update, dest = plainInsert, plainUpdate, dest[:1]
		}
		sql, values := insert, texts(next)
		if prev.Exists() {
			was, err := backends.Decode(name, []byte(prev.Version))
			if err != nil {
				return backends.Record{}, fmt.Errorf("%w (and the version to replace is not one of this election)", backends.ErrConflict)
			}
			sql, values = update, append(values, texts(was)...)
		}
		args := []any{name, backends.Schema}
		if b.like == "" {
			args = append(args, news(ctx, prev, next), b.table.channel())
		}
		for _, v := range values {
			args = append(args, v)
		}
		sent, err := b.queryRow(ctx, b.statement(sql), args, dest...)
		switch {
		case err == nil:
			b.doubts.end(name, prev.Version)
		case errors.Is(err, pgx.ErrNoRows) || code(err) == "40001":
			err = backends.ErrConflict
		case sent && b.like == "" && code(err) != lockNotAvailable:
			b.doubts.add(name, prev.Version)
		}
		return versioned(name, next), err
	})
}

// news returns "" for a change that no Watch must see, and otherwise how long its commit
// may wait for others that notify: they go one after the other, and each of them waits for
// the disk and the standbys. The server would otherwise take the bound of impatiently.
func news(ctx context.Context, prev, next backends.Record) string {
	if prev.Holder == next.Holder && prev.Token == next.Token && prev.Value == next.Value && prev.Extensions == next.Extensions {
		return ""
	}
	return lockTimeout(ctx, time.Minute, 2)
}

// versioned sets the record's version, which is all that its row holds. The
// attempt alone would do for our own writes; this also detects edits by hand.
func versioned(name string, r backends.Record) backends.Record {
	r.Version = backends.Version(backends.Encode(name, r))
	return r
}

// queryRow is query for a statement that returns one row.
func (b *Backend) queryRow(ctx context.Context, sql string, args []any, dest ...any) (sent bool, err error) {
	return b.query(ctx, sql, args, func(rows pgx.Rows) error {
		_, err := pgx.CollectOneRow(rows, func(row pgx.CollectableRow) (any, error) { return nil, row.Scan(dest...) })
		return err
	})
}

// query runs one autocommit statement in one round trip. It reports whether any
// part of it may have reached the server.
func (b *Backend) query(ctx context.Context, sql string, args []any, read func(pgx.Rows) error) (sent bool, err error) {
	conn, err := b.acquire(ctx)
	if err != nil {
		return false, withoutConfig(err)
	}
	defer conn.Release()
	notes := conn.Conn().PgConn().CustomData()
	delete(notes, unreplicated)
	if strings.Contains(sql, impatiently) {
		args = slices.Insert(args, 1, any(lockTimeout(ctx, 300*time.Millisecond, 4)))
	}
	// In this mode there is no prepared statement, which a pooler would look for
	// on another server connection.
	rows, err := conn.Query(ctx, sql, slices.Insert(args, 0, any(pgx.QueryExecModeExec))...)
	if err == nil {
		err = read(rows)
	}
	if err == nil && notes[unreplicated] != nil {
		err = errUnreplicated
	}
	cancelled := errors.Is(err, context.Canceled) && !errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	switch {
	case code(err) == "25006":
		b.leave()
	case b.ownPool && conn.Conn().IsClosed() && !cancelled:
		// The server restarted or the network is gone: the idle connections are
		// dead too. Finding out one call at a time could cost a lease.
		b.pool.Reset()
	}
	if err != nil {
		err = withoutConfig(err)
	}
	return true, err
}

// acquire waits for a connection for at most half of the time that ctx has left. A
// statement that is sent at the last moment is cancelled, which costs its connection:
// when a thousand requests wait, all connections would go that way, and each new one
// takes longer than the statement.
func (b *Backend) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	wait := ctx
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	conn, err := b.pool.Acquire(wait)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("no connection in half of the request's time: the server accepts none or does not answer, a firewall drops the packets, or all %d connections of this process are busy; nothing was sent", b.pool.Config().MaxConns)
	}
	return conn, err
}

// lockTimeout returns a part of the time that ctx has left, and most at most: it leaves
// time to read, and to try again.
func lockTimeout(ctx context.Context, most, part time.Duration) string {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/part)
	}
	return fmt.Sprintf("%dms", max(most.Milliseconds(), 1)) // 0 would be for ever
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	swaps := maxBatch
	if b.like != "" {
		swaps = 0
	}
	return backends.Description{Store: b.base.Store(), MaxSwaps: swaps, MaxLoads: maxLoads, NoWatch: b.noListen, ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. It ends the calls under way and closes
// the listening connection, and the pool unless that was given to New. It blocks
// until the connections are closed: at once, or up to 15 s in a dead network.
func (b *Backend) Close() error {
	return b.base.Close(func() error {
		if b.ownPool {
			b.pool.Close()
		}
		b.hub.Wait() // it ends with the handle
		return nil
	})
}

// maxLoads bounds the answer: a record has at most 25 kB, and mostly 200 bytes.
const maxLoads = 500

// readRows is readRow for many rows.
const readRows = `select ` + writable + `, e.* from (select 1) as one
	left join (select ` + cells + ` from %s where name = any($1::text[])) as e on true`

// LoadMany implements [backends.BatchLoader], with the further errors of Load. It is one
// statement. An election with a write that has had no answer is not read with the
// others: its row must be locked, see Load.
func (b *Backend) LoadMany(ctx context.Context, names []string) []backends.Outcome {
	return b.base.LoadMany(ctx, names, func(ctx context.Context) ([]backends.Outcome, error) {
		doubtful := make([]bool, len(names)) // before the statement, as in Load
		found := make(map[string]backends.Outcome, len(names))
		for i, name := range names {
			_, doubtful[i] = b.doubts.about(name)
			found[name] = backends.Outcome{}
		}
		_, err := b.query(ctx, b.statement(readRows), []any{names}, func(rows pgx.Rows) error {
			var readOnly string
			var row stored
			_, err := pgx.ForEachRow(rows, append([]any{&readOnly}, row.dest()...), func() error {
				if err := b.refuses(readOnly); err != nil {
					return err
				}
				if row.name == nil {
					return nil
				}
				if _, asked := found[*row.name]; !asked { // the column does not compare bytes
					return backends.ErrNotTried
				}
				r, err := row.record(*row.name)
				found[*row.name] = backends.Outcome{Record: r, Err: err}
				return nil
			})
			return err
		})
		if err != nil {
			return nil, err
		}
		outcomes := make([]backends.Outcome, len(names))
		for i, name := range names {
			if outcomes[i] = found[name]; doubtful[i] {
				outcomes[i] = backends.Outcome{Err: backends.ErrNotTried}
			}
		}
		return outcomes, nil
	})
}

// doubts are the writes whose outcome is unknown. Their commits may be visible
// although no standby has them. They may still be applied as long as the version
// that they were to replace is there. The zero value has none.
type doubts struct {
	mutex sync.Mutex
	of    map[string]doubt // by the election's name
}

// A doubt is the version that writes were to replace, and their number.
type doubt struct {
	version backends.Version
	writes  int
}

// about returns the version that a doubtful write was to replace.
func (d *doubts) about(name string) (backends.Version, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	doubt, ok := d.of[name]
	return doubt.version, ok
}

// add begins a doubt. It ends the doubt about another version, which has been
// replaced since, so that its writes can no longer be applied.
func (d *doubts) add(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.of == nil {
		d.of = map[string]doubt{}
	}
	writes := 1
	if now := d.of[name]; now.version == version {
		writes += now.writes
	}
	d.of[name] = doubt{version, writes}
}

// drop ends the doubt about one write, which was certainly not applied.
func (d *doubts) drop(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := d.of[name]; now.version == version && now.writes > 1 {
		d.of[name] = doubt{version, now.writes - 1}
	} else if now.version == version {
		delete(d.of, name)
	}
}

// end ends the doubt about all writes that were to replace the version, because
// it has been replaced.
func (d *doubts) end(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.of[name].version == version {
		delete(d.of, name)
	}
}
