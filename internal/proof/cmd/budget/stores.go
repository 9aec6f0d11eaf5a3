package main

import (
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A store is one that can be counted on.
type store struct {
	kind  string
	start func(context.Context) (*counted, error)
}

var known = []store{
	{stores.Etcd, startEtcd},
	{stores.ZooKeeper, startZooKeeper},
	{stores.Postgres, startPostgres},
	{stores.DynamoDB, startDynamoDB},
	{stores.GCS, startGCS},
}

func kinds() (all []string) {
	for _, k := range known {
		all = append(all, k.kind)
	}
	return all
}

// counted is a store whose clients count their requests.
type counted struct {
	how    string
	budget budget
	note   string // why a budget is not the usual one
	polled bool   // waiters learn of a release by reading
	open   func(context.Context) (*client, error)
	stop   func() error
}

// A client is a backend with a connection of its own. The backend is not
// wrapped: what it can do besides, the elector has to see.
type client struct {
	backend    backends.Backend
	sent       *atomic.Int64
	disconnect func()
}

func (c *client) requests() int64 { return c.sent.Load() }

func (c *client) close() {
	c.backend.Close() // a second time does nothing
	c.disconnect()
}

// startEtcd counts calls, and messages on streams: a watch is one.
func startEtcd(ctx context.Context) (*counted, error) {
	s, err := stores.Start(ctx, stores.Etcd)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*client, error) {
		sent := new(atomic.Int64)
		c, err := clientv3.New(clientv3.Config{
			Endpoints: []string{s.Address},
			Logger:    zap.NewNop(),
			DialOptions: []grpc.DialOption{
				grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption) error {
					sent.Add(1)
					return invoke(ctx, method, req, reply, cc, o...)
				}),
				grpc.WithChainStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					stream, err := streamer(ctx, d, cc, method, o...)
					return countedStream{stream, sent}, err
				}),
			},
		})
		if err != nil {
			return nil, err
		}
		return &client{etcd.New(c, "/budget/"), sent, func() { c.Close() }}, nil
	}
	return &counted{how: s.String(), budget: budget{first: 2, acquire: 2, idle: 0}, open: open, stop: s.Stop}, nil
}

type countedStream struct {
	grpc.ClientStream
	sent *atomic.Int64
}

func (s countedStream) SendMsg(m any) error {
	s.sent.Add(1)
	return s.ClientStream.SendMsg(m)
}

// startPostgres counts statements.
func startPostgres(ctx context.Context) (*counted, error) {
	s, err := stores.Start(ctx, stores.Postgres)
	if err != nil {
		return nil, err
	}
	open := func(ctx context.Context) (*client, error) {
		config, err := pgxpool.ParseConfig(s.URL)
		if err != nil {
			return nil, err
		}
		sent := new(atomic.Int64)
		config.MaxConns = 4
		config.ConnConfig.Tracer = tracer{sent}
		config.ConnConfig.OnNotice = postgres.OnNotice
		config.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false }
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, err
		}
		b, err := postgres.New(ctx, pool, nil)
		if err != nil {
			pool.Close()
			return nil, err
		}
		return &client{b, sent, pool.Close}, nil
	}
	return &counted{how: s.String(), budget: budget{first: 2, acquire: 2, idle: 2}, open: open, stop: s.Stop}, nil
}

type tracer struct{ sent *atomic.Int64 }

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.sent.Add(1)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
