package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/partition"
)

var runs atomic.Int64 // of the tests that need a store of their own

// unused returns the name of a store in memory that no test has used, in this run or in an
// earlier run of the same process.
func unused(name string) string { return fmt.Sprintf("%s-%d", name, runs.Add(1)) }

// member runs a member of the group orders until the test ends or leave is called, and
// returns once it has had so many workers.
func member(t *testing.T, url, id string, partitions, owns int) (leave func()) {
	t.Helper()
	g, err := partition.Join(t.Context(), url, "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{
		ID: id, Value: id + ":1", TTL: time.Minute, RenewEvery: time.Second, Logger: slog.New(slog.DiscardHandler),
	}})
	if err != nil {
		t.Fatal(err)
	}
	owned := make(chan int, partitions)
	var all sync.WaitGroup
	all.Go(func() {
		g.Run(context.Background(), func(ctx context.Context, l *partition.Lease) error {
			select {
			case owned <- l.Partition():
			case <-ctx.Done():
			}
			<-ctx.Done()
			return nil
		})
	})
	leave = sync.OnceFunc(func() { g.Close(); all.Wait() })
	t.Cleanup(leave)
	for range owns {
		<-owned
	}
	return leave
}

var flakes sync.Map // by name, whether it is away

func init() {
	backends.Register("flaky", func(ctx context.Context, u *url.URL) (backends.Backend, error) {
		b, err := backends.Open(ctx, "memory://"+u.Host)
		if err != nil {
			return nil, err
		}
		return &flakyBackend{b, isAway(u.Host)}, nil
	})
}

func isAway(name string) *atomic.Bool {
	down, _ := flakes.LoadOrStore(name, &atomic.Bool{})
	return down.(*atomic.Bool)
}

// A flakyBackend is the memory store of the same name. When it is away, others reach that
// store as before.
type flakyBackend struct {
	backends.Backend
	down *atomic.Bool
}

var errAway = fmt.Errorf("%w: it is away", backends.ErrUnavailable)

func (b *flakyBackend) Load(ctx context.Context, name string) (backends.Record, error) {
	if b.down.Load() {
		return backends.Record{}, errAway
	}
	return b.Backend.Load(ctx, name)
}

func (b *flakyBackend) List(ctx context.Context) ([]string, error) {
	if b.down.Load() {
		return nil, errAway
	}
	return b.Backend.(backends.Lister).List(ctx)
}

// A group is one row of list, and one line of doctor, however many partitions it has.
func TestGroupIsOne(t *testing.T) {
	for _, n := range []int{0, 64, 10000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			url := "memory://" + unused("one")
			env := []string{"ELECTOR_URL=" + url}
			if n == 0 {
				for args, code := range map[string]int{"list": 0, "list --records": 0, "leader orders": exitVacant, "partitions orders": exitUsage, "partitions orders --each": exitUsage} {
					if r := run(t, env, strings.Fields(args)...); r.code != code || strings.Contains(r.out, "group") {
						t.Errorf("%s: %+v", args, r)
					}
				}
				return
			}
			lead(t, url, "invoices", "", time.Minute)
			leave := member(t, url, "a", n, n)
			for args, want := range map[string]string{
				"list --names":      "invoices\norders\n",
				"leader orders":     fmt.Sprintf("orders\tgroup\t1 member: a\t-\t-\t%d partitions\t\t\n", n),
				"partitions orders": fmt.Sprintf("a\t0\t1\tready\t%d\t%d\t+0 -0\t0-%d\ta:1\t\n", n, n, n-1),
			} {
				if r := run(t, env, strings.Fields(args)...); r.code != 0 || r.out != want || r.err != "" {
					t.Errorf("%s: %+v, want %q", args, r, want)
				}
			}
			if r := run(t, env, "list"); r.code != 0 || !strings.HasSuffix(r.out, fmt.Sprintf("\norders\tgroup\t1 member\t-\t-\t%d partitions\n", n)) || strings.Count(r.out, "\n") != 2 {
				t.Errorf("list: %+v", r)
			}
			var row listRow
			r := run(t, env, "list", "-o", "json")
			if err := json.Unmarshal([]byte(r.out[strings.Index(r.out, "\n"):]), &row); err != nil || row.State != "group" || row.Members == nil || *row.Members != 1 || row.Partitions == nil || *row.Partitions != n {
				t.Errorf("list as JSON: %v, %+v", err, r)
			}
			var group groupRow
			r = run(t, env, "leader", "orders", "-o", "json")
			if err := json.Unmarshal([]byte(r.out), &group); err != nil || fmt.Sprint(group) != fmt.Sprintf("{orders group [a] %d}", n) {
				t.Errorf("leader as JSON: %v, %+v", err, r)
			}
			if r := run(t, env, "list", "--records", "--names"); r.code != 0 || strings.Count(r.out, "\n") != n+3 || !strings.Contains(r.out, "\norders.seat.0\n") {
				t.Errorf("list --records: %d rows, %s", strings.Count(r.out, "\n"), r.err)
			}
			if r := run(t, env, "leader", "orders.seat.0"); r.code != 0 || !strings.HasPrefix(r.out, "orders.seat.0\theld\ta\t") {
				t.Errorf("leader of a seat: %+v", r)
			}
			if r := run(t, env, "partitions", "orders", "--each"); r.code != 0 || strings.Count(r.out, "\n") != n {
				t.Errorf("--each: %d rows, %s", strings.Count(r.out, "\n"), r.err)
			}
			r = run(t, env, "doctor")
			if r.code != 0 || strings.Count(r.out, "\tgroup ") != 1 || !strings.Contains(r.out, fmt.Sprintf("ok\tgroup orders\t1 member shares %d partitions\t\n", n)) {
				t.Errorf("doctor: %+v", r)
			}
			if n == 64 {
				member(t, url, "b", n, n/2)
				if r := run(t, env, "partitions", "orders"); r.code != 0 || strings.Count(r.out, "\tready\t32\t32\t+0 -0\t") != 2 {
					t.Errorf("two members: %+v", r)
				}
				return
			}
			leave()
			if r := run(t, env, "leader", "orders"); r.code != exitVacant || !strings.HasPrefix(r.out, "orders\tgroup\tno member\t") {
				t.Errorf("leader of a group without members: %+v", r)
			}
			if r := run(t, env, "doctor"); r.code != 0 || !strings.Contains(r.out, fmt.Sprintf("warn\tgroup orders\tno member runs; %d partitions have no owner\tstart a member", n)) {
				t.Errorf("doctor of a group without members: %+v", r)
			}
		})
	}
}

// doctor finds a group whose members all crashed: their records stand still.
func TestDoctorGroupGone(t *testing.T) {
	lives, gone := "memory://"+unused("lives"), "memory://"+unused("gone")
	from, err := backends.Open(t.Context(), lives)
	if err != nil {
		t.Fatal(err)
	}
	to, err := backends.Open(t.Context(), gone)
	if err != nil {
		t.Fatal(err)
	}
	leave := member(t, lives, "a", 3, 3)
	names, err := from.(backends.Lister).List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		r, err := from.Load(t.Context(), name)
		if err == nil {
			r.TTL, r.RenewEvery, r.Version = min(r.TTL, 200*time.Millisecond), min(r.RenewEvery, 50*time.Millisecond), backends.Record{}.Version
			_, err = to.Swap(t.Context(), name, backends.Record{}, r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leave()
	r := run(t, []string{"ELECTOR_URL=" + gone}, "doctor")
	if r.code != exitVacant || !strings.Contains(r.out, "fail\tgroup orders\t1 member shares 3 partitions; a has not renewed seat 0 for ") || !strings.Contains(r.out, "3 partitions have no owner for ") {
		t.Errorf("%+v", r)
	}
}

// A store that does not answer is an error of each command, in one line.
func TestGroupDeadStore(t *testing.T) {
	name := unused("dead")
	member(t, "memory://"+name, "a", 4, 4)
	down := isAway(name)
	for _, args := range []string{"list", "list --records", "leader orders", "partitions orders", "partitions orders --each", "doctor"} {
		down.Store(true)
		r := run(t, []string{"ELECTOR_URL=flaky://" + name}, strings.Fields(args)...)
		if r.code != exitUnavailable || !strings.Contains(cmp.Or(r.err, r.out), "it is away") || strings.Count(r.err, "\n") > 1 {
			t.Errorf("%s: %+v", args, r)
		}
		down.Store(false)
		if r := run(t, []string{"ELECTOR_URL=flaky://" + name}, strings.Fields(args)...); r.code != 0 {
			t.Errorf("%s, once the store is back: %+v", args, r)
		}
	}
}

// A screen is an output that can be awaited.
type screen struct {
	mutex sync.Mutex
	text  bytes.Buffer
	more  chan bool
}

func (s *screen) Write(b []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	select {
	case s.more <- true:
	default:
	}
	return s.text.Write(b)
}

// shows blocks until the text is there that often.
func (s *screen) shows(t *testing.T, text string, times int) {
	t.Helper()
	for {
		s.mutex.Lock()
		all := s.text.String()
		s.mutex.Unlock()
		if strings.Count(all, text) >= times {
			return
		}
		select {
		case <-s.more:
		case <-t.Context().Done():
			t.Fatalf("it never shows %q: %s", text, all)
		}
	}
}

// partitions --watch prints the time of each change, and outlives an outage of the store.
func TestPartitionsWatch(t *testing.T) {
	name := unused("watched")
	leave := member(t, "memory://"+name, "a", 4, 4)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	out, diagnostics := &screen{more: make(chan bool, 1)}, &screen{more: make(chan bool, 1)}
	ended := make(chan int, 1)
	go func() {
		tool := &tool{out: out, err: diagnostics, env: environ([]string{"ELECTOR_URL=flaky://" + name})}
		ended <- tool.main(ctx, []string{"partitions", "orders", "--watch", "-o", "json"})
	}()
	out.shows(t, `"owner":"a"`, 4)
	isAway(name).Store(true)
	member(t, "memory://"+name, "b", 4, 0)
	leave()
	diagnostics.shows(t, "cannot read the group, and tries again", 1)
	isAway(name).Store(false)
	diagnostics.shows(t, "reads the group again", 1)
	out.shows(t, `"owner":"b"`, 4)
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("code %d", code)
	}
	for line := range strings.Lines(out.text.String()) {
		var row struct {
			Time time.Time
			partitionRow
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Time.IsZero() {
			t.Errorf("%v: %s", err, line)
		}
	}
	if n := strings.Count(diagnostics.text.String(), "\n"); n != 2 {
		t.Errorf("%d lines of diagnostics: %s", n, diagnostics.text.String())
	}
}

// What moves, and why it does not yet.
func TestMoves(t *testing.T) {
	members := []partition.Member{{ID: "a"}, {ID: "b", Seat: 1, Leaving: true}, {ID: "c", Seat: 2, Drained: true}}
	for want, o := range map[string]partition.Owner{
		"":                                     {ID: "a", Planned: "a"},
		"it is vacant; the plan gives it to a": {Waiting: "it is vacant", Planned: "a"},
		"it is vacant; the plan gives it to no member that is there":                          {Waiting: "it is vacant"},
		"the plan gives it to b; the worker of a has not returned yet":                        {ID: "a", Planned: "b"},
		"the plan gives it to a, as b leaves the group; the worker of b has not returned yet": {ID: "b", Planned: "a"},
		"the plan gives it to a, as c is drained; the worker of c has not returned yet":       {ID: "c", Planned: "a"},
		"the plan gives it to a member that is gone; the worker of a has not returned yet":    {ID: "a"},
		"the plan gives it to a; the worker of stranger has not returned yet":                 {ID: "stranger", Planned: "a"},
	} {
		if got := moves(o, members); got != want {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
	var out strings.Builder
	p := &printer{format: "tsv", out: &out}
	printMembers(p, members, []partition.Owner{
		{Partition: 0, ID: "a", Planned: "a"}, {Partition: 1, ID: "b", Planned: "a"}, {Partition: 2, ID: "b", Planned: "a"},
		{Partition: 3, ID: "c", Planned: "a"}, {Partition: 4, Planned: "a", Waiting: "it is vacant"}, {Partition: 5, Waiting: "it is vacant"},
	})
	want := "a\t0\t0\tready\t1\t0\t+4 -0\t0\t\tthe plan gives it to a, as b leaves the group; the worker of b has not returned yet (2); it is vacant; the plan gives it to a (1); the plan gives it to a, as c is drained; the worker of c has not returned yet (1)\n" +
		"b\t1\t0\tleaving\t2\t0\t+0 -2\t1-2\t\t\nc\t2\t0\tdrained\t1\t0\t+0 -1\t3\t\t\n-\t-\t-\tnone\t2\t-\t-2\t4-5\t\tit is vacant (2)\n"
	if out.String() != want {
		t.Errorf("it prints\n%swant\n%s", out.String(), want)
	}
	if got := reasons([]string{"d", "c", "b", "a", "a", "e"}); got != "a (2); b (1); c (1); 2 other reasons" {
		t.Error(got)
	}
	p.format = "table"
	if got := p.brief(strings.Repeat("10,12,", 1000) + "7"); got != strings.Repeat("10,12,", 6)+"10,… 1988 more" {
		t.Error(got)
	}
}
