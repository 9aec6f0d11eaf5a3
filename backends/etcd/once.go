package etcd

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// dialOptions make the client send everything once, see Consistency in the
// package comment. The client's interceptors repeat requests by their status code;
// ours run inside of them and change the codes that they repeat. They recognise an
// expired token by its text, and still repeat that.
func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			return once(ctx, invoke(ctx, method, request, reply, conn, append(options, grpc.WaitForReady(false))...))
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
			s, err := open(ctx, desc, conn, method, append(options, grpc.WaitForReady(false))...)
			if err != nil {
				return nil, once(ctx, err)
			}
			return stream{s, ctx}, nil
		}),
		// With windows of a fixed size the client does not estimate the bandwidth, for which it
		// sends a ping behind each answer.
		grpc.WithInitialWindowSize(window),
		grpc.WithInitialConnWindowSize(window),
		// By default up to two minutes pass between two tries to connect.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 1500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
}

// window is the most that the server sends of one answer, or of all, before the client has
// read it, in bytes.
const window = 1 << 20

// once replaces the code of an error after which the client library would try
// again by one that it passes on. The text stays.
func once(ctx context.Context, err error) error {
	switch status.Code(err) {
	case codes.Unavailable, codes.Internal, codes.Canceled, codes.DeadlineExceeded:
		if ctx.Err() == nil { // otherwise it is our own deadline, and must stay one
			return status.Error(codes.Aborted, status.Convert(err).Message())
		}
	}
	return err
}

// stream is a stream of watches that ends when its connection does.
type stream struct {
	grpc.ClientStream
	ctx context.Context // the caller's: the stream's own ends with any error
}

func (s stream) RecvMsg(m any) error { return once(s.ctx, s.ClientStream.RecvMsg(m)) }
