package adversary

import (
	"context"
	"crypto/rand"
	"database/sql"
	"flag"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/adversary/wire"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

var (
	stopsWanted = flag.Int("stops", 400, "how many stops to make, on all places together")
	elections   = flag.Int("elections", 3, "how many elections to hold on each place at the same time")
	seed        = flag.Uint64("seed", 1, "decides where each candidate stops")
)

// run sets the elections of this run apart from those of others on the same store.
var run = strings.ToLower(rand.Text()[:8])

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, kind string) *stores.Store {
	t.Helper()
	s, err := stores.Start(t.Context(), kind)
	must(t, err)
	t.Log(s)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// everywhere are the points that each place has.
var everywhere = []string{wire.Check, wire.Drain, wire.Release, wire.Released, wire.Renew, wire.Renewed}

// places returns one for each kind of data.
func places(t *testing.T) []*Place {
	etcd, postgres := start(t, stores.Etcd), start(t, stores.Postgres)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd.Address}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	keys := func(ctx context.Context, election string, guarded bool) (all []wire.Write, err error) {
		folder := map[bool]string{true: "guarded/", false: "plain/"}[guarded]
		answer, err := client.Get(ctx, folder+election+"/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil {
			return nil, err
		}
		for _, kv := range answer.Kvs {
			w, err := wire.Parse(string(kv.Value))
			if err != nil {
				return nil, err
			}
			all = append(all, w)
		}
		return all, nil
	}

	db, err := sql.Open("pgx", postgres.URL)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	table, err := fencesql.New(fencesql.PostgreSQL, "fences")
	must(t, err)
	for _, statement := range []string{"create table written (election text, guarded boolean, write text)", table.CreateSQL()} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	rows := func(ctx context.Context, election string, guarded bool) (all []wire.Write, err error) {
		rows, err := db.QueryContext(ctx, "select write from written where election = $1 and guarded = $2 order by pg_xact_commit_timestamp(xmin)", election, guarded)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				return nil, err
			}
			w, err := wire.Parse(text)
			if err != nil {
				return nil, err
			}
			all = append(all, w)
		}
		return all, rows.Err()
	}
	and := func(more ...string) []string { return slices.Concat(everywhere, more) }
	return []*Place{
		{Name: "etcd.Commit", Kind: wire.Etcd, Points: and(wire.Guard), URL: etcd.URL, Data: etcd.URL, Read: keys},
		{Name: "postgres.Transact, TransactDB", Kind: wire.Postgres, Points: and(wire.Guard, wire.Guarded), URL: postgres.URL, Data: postgres.URL, Read: rows},
		{Name: "fencesql on PostgreSQL, elections on etcd", Kind: wire.SQL, Points: and(wire.Entered, wire.Guarded), URL: etcd.URL, Data: postgres.URL, Read: rows},
		{Name: "elector.Fence at a service, elections in files", Kind: wire.Fence, Points: and(wire.Admitted), URL: "file://" + t.TempDir()},
	}
}

func adversary(t *testing.T, program string, p *Place) *Adversary {
	return &Adversary{Program: program, Place: p, Elections: *elections, Candidates: 3, TTL: 500 * time.Millisecond, Seed: *seed, Run: run, Log: t.Logf}
}

// Whatever the point at which a leader stops, no late write of it passes a guard. Without
// one they pass, which shows that the stops are long enough.
func TestStops(t *testing.T) {
	program, err := Build(t.Context(), t.TempDir(), "")
	must(t, err)
	all := places(t)
	var group sync.WaitGroup
	defer group.Wait()
	results, errs := make([]map[string]*Figures, len(all)), make([]error, len(all))
	for i, p := range all {
		a := adversary(t, program, p)
		a.Stops = (*stopsWanted + len(all) - 1) / len(all)
		group.Go(func() { results[i], errs[i] = a.Make(t.Context()) })
	}
	group.Wait()
	for i, p := range all {
		t.Logf("seed %d\n%s", *seed, Table(p.Name, results[i]))
		if errs[i] != nil {
			t.Error(errs[i])
			continue
		}
		for _, point := range p.Points {
			f := results[i][point]
			switch {
			case f == nil:
				t.Errorf("%s: no stop %s", p.Name, wire.Points[point])
			case f.Stale > 0:
				t.Errorf("%s: %d stale writes passed the guard, after stops %s", p.Name, f.Stale, wire.Points[point])
			case f.Unguarded == 0:
				t.Errorf("%s: stops %s show nothing: no stale write passed where there is no guard", p.Name, wire.Points[point])
			case f.Believed > 0:
				t.Errorf("%s: %d leaders were believed by Check after their successor had written, after stops %s", p.Name, f.Believed, wire.Points[point])
			case f.Stops == 0:
				t.Errorf("%s: no late write after stops %s", p.Name, wire.Points[point])
			case f.Committed > 0 && point != wire.Admitted: // which is made before the successor's
				t.Errorf("%s: %d late guarded writes were committed, after stops %s", p.Name, f.Committed, wire.Points[point])
			}
		}
		if f := results[i][wire.None]; f != nil && f.Stale > 0 {
			t.Errorf("%s: %d stale writes passed the guard without a stop", p.Name, f.Stale)
		}
	}
}

// A broken guard lets stale writes through.
func TestMutants(t *testing.T) {
	all := places(t)
	caught := func(t *testing.T, program string, p *Place) {
		a := adversary(t, program, p)
		a.Stops, a.Run = 12, run+"-mutant-"+strings.ToLower(rand.Text()[:8])
		figures, err := a.Make(t.Context())
		t.Logf("\n%s", Table(p.Name, figures))
		must(t, err)
		if Sum(figures).Stale == 0 {
			t.Error("no stale write passed the broken guard")
		}
	}
	for name, m := range Mutants {
		t.Run(name, func(t *testing.T) {
			program, err := Build(t.Context(), t.TempDir(), name)
			must(t, err)
			p := *all[slices.IndexFunc(all, func(p *Place) bool { return p.Kind == m.Kind })]
			p.Points = m.Points
			caught(t, program, &p)
		})
	}
	t.Run("fence-admits-before", func(t *testing.T) {
		program, err := Build(t.Context(), t.TempDir(), "")
		must(t, err)
		p := *all[slices.IndexFunc(all, func(p *Place) bool { return p.Kind == wire.Fence })]
		p.Points, p.Outside = []string{wire.Admitted}, true
		caught(t, program, &p)
	})
}

func TestStale(t *testing.T) {
	all := []wire.Write{{Token: 1, Point: "a"}, {Token: 1, Point: "b"}, {Token: 3, Point: "c"}, {Token: 2, Point: "d"}, {Token: 1, Point: "e"}, {Token: 3, Point: "f"}}
	if got := stale(all); !slices.Equal(got, []wire.Write{{Token: 2, Point: "d"}, {Token: 1, Point: "e"}}) {
		t.Errorf("stale are %v", got)
	}
}
