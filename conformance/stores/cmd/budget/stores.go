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
	"github.com/elector-go/elector/conformance/stores"
)

// counted is a store whose clients count their requests.
type counted struct {
	how  string
	idle float64 // requests in a renewal interval that waiting may cost
	open func(context.Context) (*client, error)
	stop func() error
}

// A client is a backend with a connection of its own.
type client struct {
	backends.Backend
	sent  *atomic.Int64
	close func()
}

func (c *client) requests() int64 { return c.sent.Load() }

func (c *client) Close() error {
	err := c.Backend.Close()
	c.close()
	return err
}

// Watch lets the elector see that the backend can; both can.
func (c *client) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return c.Backend.(backends.Watcher).Watch(ctx, name, changed)
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
	return &counted{s.String(), 0, open, s.Stop}, nil
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
	return &counted{s.String(), 2, open, s.Stop}, nil
}

type tracer struct{ sent *atomic.Int64 }

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	t.sent.Add(1)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
