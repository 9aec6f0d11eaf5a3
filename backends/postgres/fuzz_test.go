package postgres

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A canned server answers every query with one row, and remembers what was
// asked. It has no network.
type canned struct {
	all sync.WaitGroup

	mutex sync.Mutex
	types []uint32 // of the row's columns
	row   [][]byte // nil is NULL; a nil row is none
	fails string   // the SQLSTATE of its end, if any
	by    []answer // instead, to statements that contain a text; the first counts
	asked []string // statements
	with  []string // their first parameters
}

// An answer is one row, if it has values, of columns of type text, or of others.
type answer struct {
	contains string
	types    []uint32
	row      [][]byte
	fails    string // with this SQLSTATE, after the row
}

// The types of the columns of readRow and lockRow.
var loadTypes = []uint32{25, 25, 25, 25, 23, 25, 20, 20, 20, 25, 25, 25}

func (s *canned) answers(types []uint32, row [][]byte) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.types, s.row, s.asked, s.with = types, row, nil, nil
}

func (s *canned) questions() (asked, with []string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.asked, s.with
}

func (s *canned) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	s.all.Go(func() {
		defer server.Close()
		s.serve(pgproto3.NewBackend(server, server))
	})
	return client, nil
}

func (s *canned) serve(conn *pgproto3.Backend) {
	if _, err := conn.ReceiveStartupMessage(); err != nil {
		return
	}
	conn.Send(&pgproto3.AuthenticationOk{})
	conn.Send(&pgproto3.ParameterStatus{Name: "client_encoding", Value: "UTF8"})
	conn.Send(&pgproto3.ParameterStatus{Name: "standard_conforming_strings", Value: "on"})
	conn.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: 1})
	conn.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	for conn.Flush() == nil {
		message, err := conn.Receive()
		if err != nil {
			return
		}
		s.mutex.Lock()
		switch m := message.(type) {
		case *pgproto3.Parse:
			s.asked = append(s.asked, m.Query)
			if i := slices.IndexFunc(s.by, func(a answer) bool { return strings.Contains(m.Query, a.contains) }); i >= 0 {
				s.types, s.row, s.fails = s.by[i].types, s.by[i].row, s.by[i].fails
			}
			conn.Send(&pgproto3.ParseComplete{})
		case *pgproto3.Bind:
			if len(m.Parameters) > 0 {
				s.with = append(s.with, string(m.Parameters[0]))
			}
			conn.Send(&pgproto3.BindComplete{})
		case *pgproto3.Describe:
			fields := make([]pgproto3.FieldDescription, len(s.types))
			for i, oid := range s.types {
				fields[i] = pgproto3.FieldDescription{Name: []byte("c"), DataTypeOID: oid, DataTypeSize: -1, TypeModifier: -1}
			}
			conn.Send(&pgproto3.RowDescription{Fields: fields})
		case *pgproto3.Execute:
			if s.row != nil {
				conn.Send(&pgproto3.DataRow{Values: s.row})
			}
			if s.fails != "" {
				conn.Send(&pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: s.fails, Message: "as the test wants"})
			} else {
				conn.Send(&pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")})
			}
		case *pgproto3.Sync:
			conn.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		}
		s.mutex.Unlock()
	}
}

func cannedBackend(f testing.TB) (*canned, *Backend) {
	s := &canned{}
	config, err := pgxpool.ParseConfig("postgres://u@h/db?sslmode=disable&pool_max_conns=1")
	if err != nil {
		f.Fatal(err)
	}
	config.ConnConfig.DialFunc = s.dial
	config.ConnConfig.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // which the server does not answer
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		f.Fatal(err)
	}
	b := newBackend(pool, true, "postgres://h/db", table{"public", "elector"})
	f.Cleanup(func() { b.Close(); s.all.Wait() })
	return s, b
}

// FuzzRow: whatever a row of the table holds, it is the record that its columns
// say or foreign, and is read in bounded memory. The bits of nulls are columns
// that are NULL.
func FuzzRow(f *testing.F) {
	add := func(nulls uint8, schema int32, change func(r *backends.Record)) {
		r := check.Good()
		change(&r)
		f.Add(nulls, schema, r.Holder, int64(r.Token), int64(r.TTL), int64(r.RenewEvery), r.Attempt.String(), r.Value, string(r.Extensions))
	}
	same := func(*backends.Record) {}
	for nulls := range 9 {
		add(1<<nulls>>1, 1, same)
	}
	for _, schema := range []int32{0, 2, -1} {
		add(0, schema, same)
	}
	for _, change := range []func(r *backends.Record){
		func(r *backends.Record) { r.Holder, r.Value = "", "" },
		func(r *backends.Record) { r.Holder = strings.Repeat("h", backends.MaxText+1) },
		func(r *backends.Record) { r.Value = strings.Repeat("é", backends.MaxText) },
		func(r *backends.Record) { r.Value = "\xff" },
		func(r *backends.Record) { r.Token = 0 },
		func(r *backends.Record) { r.Token = 1<<64 - 1 },
		func(r *backends.Record) { r.Token = backends.MaxToken },
		func(r *backends.Record) { r.Token = backends.MaxToken + 1 },
		func(r *backends.Record) { r.TTL, r.RenewEvery = backends.MaxTTL, backends.MaxTTL-1 },
		func(r *backends.Record) { r.TTL = backends.MaxTTL + 1 },
		func(r *backends.Record) { r.TTL = 0 },
		func(r *backends.Record) { r.TTL = -1 << 63 },
		func(r *backends.Record) { r.RenewEvery = r.TTL },
		func(r *backends.Record) { r.RenewEvery = 0 },
		func(r *backends.Record) { r.Attempt.Nonce = "" },
		func(r *backends.Record) { r.Attempt.Nonce = "a.b" },
		func(r *backends.Record) { r.Attempt.Nonce = strings.Repeat("x", backends.MaxNonce+1) },
		func(r *backends.Record) { r.Attempt.Sequence = 0 },
	} {
		add(0, 1, change)
	}
	for _, ext := range check.Extensions() {
		add(0, 1, func(r *backends.Record) { r.Extensions = backends.Extensions(ext) })
	}
	s, b := cannedBackend(f)
	f.Fuzz(func(t *testing.T, nulls uint8, schema int32, holder string, token, ttl, renewEvery int64, attempt, value, ext string) {
		number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
		row := [][]byte{[]byte("off"), {}, {}, []byte(check.Election), number(int64(schema)), []byte(holder), number(token), number(ttl), number(renewEvery), []byte(attempt), []byte(value), []byte(ext)}
		for i := range 8 {
			if nulls&(1<<i) != 0 {
				row[4+i] = nil
			}
		}
		s.answers(loadTypes, row)
		var r backends.Record
		var err error
		check.Bounded(t, 1<<14+len(holder)+len(attempt)+len(value)+len(ext), func() { r, err = b.Load(t.Context(), check.Election) })
		if !check.Loaded(t, check.Election, r, err) {
			return
		}
		if nulls != 0 || schema != 1 || r.Holder != holder || r.Value != value || string(r.Extensions) != ext || int64(r.Token) != token || int64(r.TTL) != ttl || int64(r.RenewEvery) != renewEvery || !strings.HasPrefix(attempt, r.Attempt.Nonce+".") {
			t.Fatalf("%q was taken as %+v", row, r)
		}
		was, err := backends.Decode(check.Election, []byte(r.Version)) // as Swap does
		if r.Version = ""; err != nil || was != r {
			t.Fatalf("the version of %+v is %+v, %v", r, was, err)
		}
	})
}

// FuzzNames: a name is a parameter of statements that are the same for all
// names; an invalid name is never sent.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0])
	}
	s, b := cannedBackend(f)
	reads, writes := "", ""
	f.Fuzz(func(t *testing.T, name string) {
		s.answers(loadTypes, append([][]byte{[]byte("off")}, make([][]byte, 11)...)) // no such row
		r, err := b.Load(t.Context(), name)
		read, named := s.questions()
		s.answers([]uint32{25, 25, 25}, make([][]byte, 3))
		_, e := b.Swap(t.Context(), name, backends.Record{}, check.Good())
		written, withName := s.questions()
		if named = append(named, withName...); !check.Usable(name) {
			if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(read)+len(written) > 0 {
				t.Fatalf("%q: Load %v and Swap %v with statements %q %q, want ErrName and none", name, err, e, read, written)
			}
			return
		}
		if err != nil || e != nil || r.Exists() || len(read) != 1 || len(written) != 1 || len(named) != 2 || named[0] != name || named[1] != name {
			t.Fatalf("%q: Load %+v, %v and Swap %v with statements %q %q for %q", name, r, err, e, read, written, named)
		}
		if reads == "" {
			reads, writes = read[0], written[0]
		}
		if read[0] != reads || written[0] != writes {
			t.Fatalf("%q changes the statements to %s and %s", name, read[0], written[0])
		}
	})
}

// FuzzTable: the name of a table is one or two plain identifiers or is refused,
// so that it is no more than a name in any statement.
func FuzzTable(f *testing.F) {
	for _, s := range []string{"elector", "ops.Elections", "", ".", "a.", ".a", "a.b.c", "a;b", `a"b`, "1a", "a b", "é", "a\n", "a\x00", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := parseTable(s)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", s, err)
			}
			return
		}
		want := `"` + strings.ReplaceAll(s, ".", `"."`) + `"`
		if len(name) < 1 || len(name) > 2 || name.quoted() != want || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") != "" || strings.Contains(name.channel(), ".") {
			t.Fatalf("%q is %q, quoted %s", s, []string(name), name.quoted())
		}
	})
}

// FuzzURL: a URL is what the client library can use or is refused, and its
// password reaches the library only, and so does one in its parameters.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h/db", "h1:5433,h2:5434/base?table=ops.elections&create=false&listen=false&sslmode=disable&search_path=ops&pool_max_conns=2", "", "/", "/db", "[::1]/db", "h:99999/db", "h:x/db", "h?host=a&port=b", "h/db?tabel=x", "h/db?table=a&table=b",
		"h/db?target_session_attrs=any", "h/db?synchronous_commit=off", "h/db?table=a%3Bb", "h/db?connect_timeout=never", "h/db?pool_max_conns=0", "h/db?sslmode=maybe", "h/db?sslmode=verify-full&sslrootcert=%2Fno%2Fsuch%2Ffile", "h/db?sslcert=a", "h/db?service=x&servicefile=/no/such/file", "h/a%40b", "h#f")
	for _, key := range []string{"PGHOST", "PGPORT", "PGDATABASE", "PGUSER", "PGPASSWORD", "PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGCONNECT_TIMEOUT", "PGTARGETSESSIONATTRS", "PGSERVICE", "PGSERVICEFILE", "PGAPPNAME", "PGOPTIONS"} {
		f.Setenv(key, "")
	}
	f.Setenv("PGPASSFILE", "/no/such/file")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"postgres", "postgresql"}, user, before, after, rest)
		if !ok {
			return
		}
		texts := []string{a.Text}
		for _, key := range []string{"password", "sslpassword"} {
			if query, ok := a.Query(key); ok {
				texts = append(texts, "postgres://h/db?"+query, "postgres://h:x/db?connect_timeout=x&"+query)
			}
		}
		for _, text := range texts {
			u, err := url.Parse(text)
			if err != nil {
				continue // backends.Open says nothing of it
			}
			config, options, err := parse(u)
			a.Hides(t, err, options.Table)
			if err != nil {
				if !errors.Is(err, backends.ErrURL) {
					t.Fatalf("%q: %v is not ErrURL", text, err)
				}
				continue
			}
			a.Hides(t, backends.Redact(u)) // the name of the store from now on
			c := config.ConnConfig
			if text == a.Text && !u.Query().Has("user") && !u.Query().Has("password") && user != "" {
				a.Means(t, c.User, c.Password)
			}
			if _, err := parseTable(options.Table); err != nil || c.ConnectTimeout <= 0 || c.ValidateConnect == nil || c.DefaultQueryExecMode != pgx.QueryExecModeExec || c.RuntimeParams["client_encoding"] != "UTF8" {
				t.Fatalf("%q: %+v %+v", text, options, c.RuntimeParams)
			}
		}
	})
}
