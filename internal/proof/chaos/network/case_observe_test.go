package network

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

// An observer keeps the last that its Elector has observed.
type observer struct {
	*candidate
	mutex sync.Mutex
	last  elector.Leader
	err   error
}

func (c *candidate) observe() *observer {
	o := &observer{candidate: c}
	ctx, cancel := context.WithCancel(context.Background())
	c.s.Cleanup(cancel)
	c.s.all.Go(func() {
		for l, err := range c.Observe(ctx) {
			o.mutex.Lock()
			o.last, o.err = l, err
			o.mutex.Unlock()
		}
	})
	return o
}

// shows blocks until the observer has seen the value.
func (o *observer) shows(value, rule string) {
	o.s.Helper()
	o.s.until(rule, func() bool {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.err != nil {
			o.s.Fatalf("%s: the observation has ended: %v", rule, o.err)
		}
		return o.last.Value == value
	})
}

// notHot fails the case if there were more requests than pauses that grow to
// half of RenewEvery leave time for.
func (o *observer) notHot(since time.Duration) {
	o.s.Helper()
	lasted := history.BootTime() - since
	for _, op := range []string{"load", "watch"} {
		if n, _ := o.asked(op, since); n > 10+int(2*lasted/o.every) {
			o.s.Errorf("%d requests (%s) in %v: a hot loop", n, op, lasted)
		}
	}
}

// resume: an observer whose network breaks catches up when it is mended, and
// does not hammer the store meanwhile.
func resume(s *scene) {
	leader := s.join(lasting())
	l := leader.lead()
	marked := map[string]string{ // so that the case finds this observer's session
		stores.Postgres:  "application_name=" + s.election,
		stores.ZooKeeper: "session_timeout=1s",
	}[s.store.Kind]
	if marked != "" {
		mark := "?"
		if strings.Contains(s.store.URL, "?") {
			mark = "&"
		}
		marked = mark + marked
	}
	o := s.joinVia(s.store.URL+marked, lasting()).observe()
	value := 0
	change := func() string {
		s.Helper()
		value++
		s.must(l.Proclaim(s.context(), fmt.Sprint(value)), "proclaiming")
		return fmt.Sprint(value)
	}
	o.shows(change(), "an observer sees a change")

	for _, f := range []Fault{Reset, Cut, LoseRequests, Refuse} {
		before := o.link.Count()
		began, _ := o.breaks(f)
		want := change()
		if f == Reset || f == Refuse {
			failed := 0
			s.await(0, "an observer tries again", func(e history.Event) bool {
				if e.Kind == history.Trouble && e.Candidate == o.ID() && e.At > began {
					failed++
				}
				return failed == 4
			})
		}
		// What a store pushes through one way of a connection still arrives.
		if f != LoseRequests {
			s.until("the fault happens: "+string(f), func() bool { return o.link.Count().Sum() > before.Sum() })
		}
		o.notHot(began)
		o.heals()
		o.shows(want, "an observer catches up after "+string(f))
		o.shows(change(), "an observer sees a change after "+string(f))
	}

	// What the store itself can do to an observer.
	if trouble := map[string]func(*observer, func() string) string{
		stores.Etcd:      compaction,
		stores.ZooKeeper: sessionLoss,
		stores.Postgres:  lostListen,
	}[s.store.Kind]; trouble != nil {
		began := history.BootTime()
		want := trouble(o, change)
		o.shows(want, "an observer catches up after what its store did")
		o.shows(change(), "an observer sees a change after what its store did")
		o.notHot(began)
	}
}

// compaction removes every revision that a cut-off observer has seen.
func compaction(o *observer, change func() string) string {
	s := o.s
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.store.Address}, Logger: zap.NewNop()})
	s.must(err, "connecting to etcd")
	defer client.Close()
	o.breaks(Reset)
	change()
	want := change()
	now, err := client.Get(s.context(), "/")
	s.must(err, "reading etcd's revision")
	// Other cases write to this store, and it may be compacted already.
	if _, err := client.Compact(s.context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil && !strings.Contains(err.Error(), "compacted") {
		s.Fatalf("compacting etcd: %v", err)
	}
	o.heals()
	return want
}

// sessionLoss cuts an observer off until its session has expired: that of a
// canary, which came through the same proxy with the same time, has.
func sessionLoss(o *observer, change func() string) string {
	s := o.s
	connect := func(address string) *zk.Conn {
		conn, events, err := zk.Connect([]string{address}, time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		s.must(err, "connecting to ZooKeeper")
		for e := range events {
			if e.State == zk.StateHasSession {
				break
			}
		}
		return conn
	}
	canary, direct := connect(o.link.Address()), connect(s.store.Address)
	defer canary.Close()
	defer direct.Close()
	path := "/" + s.election + "-canary"
	_, err := canary.Create(path, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	s.must(err, "creating a canary")
	o.breaks(Refuse)
	want := change()
	s.until("a session that is cut off expires", func() bool {
		there, _, err := direct.Exists(path)
		return err == nil && !there
	})
	o.heals()
	return want
}

// silent keeps the ZooKeeper library from writing to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}

// lostListen ends an observer's listening connection.
func lostListen(o *observer, change func() string) string {
	s := o.s
	conn, err := pgx.Connect(s.context(), s.store.URL)
	s.must(err, "connecting to PostgreSQL")
	defer conn.Close(context.Background())
	s.until("the server ends the listening connection", func() bool {
		var ended int
		err := conn.QueryRow(s.context(), `select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = $1 and query ilike 'listen%'`, s.election).Scan(&ended)
		s.must(err, "ending a connection")
		return ended > 0
	})
	return change()
}
