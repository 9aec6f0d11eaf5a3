package etcd

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector/backends"
)

// A refuser is a server that answers everything but the first read with an
// error, and counts.
type refuser struct {
	pb.UnimplementedKVServer
	pb.UnimplementedWatchServer
	err                    error
	reads, writes, watches atomic.Int32
}

func (s *refuser) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	if s.reads.Add(1) == 1 {
		return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
	}
	return nil, s.err
}

func (s *refuser) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if isProbe(r) {
		s.reads.Add(1)
		return likeEtcd(), nil
	}
	s.writes.Add(1)
	return nil, s.err
}

func (s *refuser) Watch(pb.Watch_WatchServer) error {
	s.watches.Add(1)
	return s.err
}

// start serves and returns a handle, whose opening was the first read.
func (s *refuser) start(t *testing.T) backends.Watcher {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, s)
	pb.RegisterWatchServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	b, err := open(t.Context(), &url.URL{Scheme: "etcd", Host: listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.(backends.Watcher)
}

var record = backends.Record{Holder: "h", Token: 1, TTL: time.Second, RenewEvery: time.Millisecond, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

// A write that may have been applied is not sent again: the second one could
// find the first, and report a conflict.
func TestNothingIsSentTwice(t *testing.T) {
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.Unavailable, codes.Internal, codes.Unknown, codes.ResourceExhausted} {
		t.Run(code.String(), func(t *testing.T) {
			s := &refuser{err: status.Error(code, "refused")}
			b := s.start(t)
			if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
				t.Errorf("Swap: got %v, want ErrUnavailable", err)
			}
			if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
				t.Errorf("Load: got %v, want ErrUnavailable", err)
			}
			if n := s.writes.Load(); n != 1 {
				t.Errorf("one write was sent %d times", n)
			}
			if n := s.reads.Load(); n != 2 {
				t.Errorf("opening and one read were sent %d times", n)
			}
		})
	}
}

// What etcd did not do because the login was out of date may be sent again.
func TestRefreshedLoginIsSentAgain(t *testing.T) {
	s := &refuser{err: rpctypes.ErrGRPCInvalidAuthToken}
	b := s.start(t)
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if n := s.writes.Load(); n != 3 {
		t.Errorf("sent %d times, want 3", n)
	}
}

// A lost connection ends a watch; the client library would hide it.
func TestWatchEndsWithItsStream(t *testing.T) {
	s := &refuser{err: status.Error(codes.Unavailable, "gone")}
	b := s.start(t)
	s.reads.Store(0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	calls := 0
	err := b.Watch(ctx, "a", func(backends.Record) { calls++ })
	if !errors.Is(err, backends.ErrUnavailable) || ctx.Err() != nil {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if calls != 1 || s.watches.Load() != 1 {
		t.Errorf("%d calls and %d streams, want one each", calls, s.watches.Load())
	}
}
