package migrate

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/child"
)

// variable makes the test binary a candidate: an environment variable with a task.
const variable = "ELECTOR_MIGRATE_CANDIDATE"

func TestMain(m *testing.M) {
	var t task
	switch is, err := child.Task(variable, &t); {
	case err != nil:
		panic(err)
	case is:
		if err := candidate(t); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	child.Prepare()
	leak.Main(m)
}

// ttl is that of both locks, in seconds.
const ttl = 5

// A task tells a candidate what to do.
type task struct {
	ID, Version  string // of the service: one of the keys of versions
	URL, Address string // of etcd
	Name         string // of the election, in both locks
}

// A message is a line that a candidate prints.
type message struct {
	Kind  string        // one of those below
	At    time.Duration // on the clock that all processes share
	Token uint64        // 0 under the old lock alone
}

const (
	campaigns = "campaigns"
	begun     = "begun"    // the worker was called
	stopping  = "stopping" // the worker was told to stop
	returned  = "returned" // the worker returns now
)

// A service is what the versions of a candidate need.
type service struct {
	task
	client  *clientv3.Client
	elector *elector.Elector
	work    func(context.Context, elector.Token) error
}

func (s service) etcd(ctx context.Context, lead func(context.Context) error) error {
	return UnderEtcd(ctx, s.client, "/old/"+s.Name, s.ID, ttl, lead)
}

func (s service) worker(ctx context.Context, lease *elector.Lease) error {
	return s.work(ctx, lease.Token())
}

// versions are A, B and C of docs/migrate.md, and one that is wrong.
var versions = map[string]func(context.Context, service) error{
	"A": func(ctx context.Context, s service) error {
		return s.etcd(ctx, func(ctx context.Context) error { return s.work(ctx, 0) })
	},
	"B": func(ctx context.Context, s service) error { return VersionB(ctx, s.etcd, s.elector, s.worker) },
	"C": func(ctx context.Context, s service) error { return VersionC(ctx, s.elector, s.worker) },
	// It releases the old lock when it is told to stop, and not after the worker has
	// returned.
	"hasty": func(ctx context.Context, s service) error {
		var worker sync.WaitGroup
		defer worker.Wait()
		return s.etcd(ctx, func(ctx context.Context) error {
			worker.Go(func() { s.elector.Run(ctx, s.worker) })
			<-ctx.Done()
			return nil
		})
	},
}

// candidate runs one version. A line of input tells it to stop, as SIGTERM would;
// its worker then returns at the end of the input.
func candidate(t task) error {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer stop()
		for lines := bufio.NewReader(os.Stdin); ; stop() {
			if _, err := lines.ReadString('\n'); err == io.EOF {
				return
			}
		}
	}()
	var mutex sync.Mutex
	out := json.NewEncoder(os.Stdout)
	tell := func(kind string, token elector.Token) {
		mutex.Lock()
		defer mutex.Unlock()
		out.Encode(message{kind, history.BootTime(), uint64(token)})
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{t.Address}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	defer client.Close()
	e, err := elector.Open(ctx, t.URL, t.Name, &elector.Options{ID: t.ID, TTL: ttl * time.Second, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	defer e.Close()
	work := func(held context.Context, token elector.Token) error {
		tell(begun, token)
		<-held.Done()
		if ctx.Err() != nil { // told to stop: the lock is still held
			tell(stopping, token)
			<-ended
		}
		tell(returned, token)
		return nil
	}
	tell(campaigns, 0)
	err = versions[t.Version](ctx, service{t, client, e, work})
	if ctx.Err() != nil {
		return nil
	}
	return err
}
