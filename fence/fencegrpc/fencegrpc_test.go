package fencegrpc_test

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencegrpc"
	"github.com/elector-go/elector/fence/internal/storm"
	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A service calls write in each call, at the beginning of each stream, for each
// message of a stream, and at the end of what a client streams.
type service struct {
	pb.UnimplementedTestServiceServer
	write func(ctx context.Context, what string) error
}

func (s *service) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return &pb.SimpleResponse{}, s.write(ctx, "call")
}

func (s *service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	if err := s.write(stream.Context(), "open"); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err != nil {
			if errors.Is(err, io.EOF) {
				return s.write(stream.Context(), "end")
			}
			return err
		}
		if err := s.write(stream.Context(), "message"); err != nil {
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
	}
}

// serve serves with the Server, and returns a connection.
func serve(t *testing.T, fence *fencegrpc.Server, write func(ctx context.Context, what string) error) *grpc.ClientConn {
	t.Helper()
	server := grpc.NewServer(grpc.UnaryInterceptor(fence.Unary()), grpc.StreamInterceptor(fence.Stream()))
	pb.RegisterTestServiceServer(server, &service{write: write})
	listener := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.DialContext(t.Context(), "passthrough:///service", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-served
	})
	return conn
}

func nothing(context.Context, string) error { return nil }

// with is a context that sends the pairs.
func with(t *testing.T, pairs ...string) context.Context {
	return metadata.NewOutgoingContext(t.Context(), metadata.Pairs(pairs...))
}

func token(t *testing.T, token string) context.Context { return with(t, fencegrpc.TokenKey, token) }

// call makes a unary call, or opens a stream and sends one message.
func call(ctx context.Context, conn grpc.ClientConnInterface, streams bool) (metadata.MD, error) {
	client := pb.NewTestServiceClient(conn)
	if !streams {
		var trailer metadata.MD
		_, err := client.UnaryCall(ctx, &pb.SimpleRequest{}, grpc.Trailer(&trailer))
		return trailer, err
	}
	stream, err := client.FullDuplexCall(ctx)
	if err != nil {
		return nil, err
	}
	if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil && !errors.Is(err, io.EOF) { // Recv has the reason
		return nil, err
	}
	if _, err := stream.Recv(); err != nil {
		return stream.Trailer(), err
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	if _, err = stream.Recv(); !errors.Is(err, io.EOF) {
		return stream.Trailer(), err
	}
	return stream.Trailer(), nil
}

// Each reason to refuse a call has its code.
func TestCodes(t *testing.T) {
	for name, streams := range map[string]bool{"unary": false, "stream": true} {
		t.Run(name, func(t *testing.T) {
			conn := serve(t, &fencegrpc.Server{Election: "cashier", Fence: &elector.Fence{MaxAhead: time.Hour}}, nothing)
			for _, c := range []struct {
				what    string
				pairs   []string
				want    codes.Code
				highest elector.Token // in the trailer
			}{
				{"a first token", []string{fencegrpc.TokenKey, "5", fencegrpc.ElectionKey, "cashier"}, codes.OK, 0},
				{"the same token", []string{fencegrpc.TokenKey, "5", fencegrpc.ElectionKey, "cashier"}, codes.OK, 0},
				{"a stale token", []string{fencegrpc.TokenKey, "4", fencegrpc.ElectionKey, "cashier"}, codes.FailedPrecondition, 5},
				{"no token", []string{fencegrpc.ElectionKey, "cashier"}, codes.InvalidArgument, 0},
				{"a malformed token", []string{fencegrpc.TokenKey, "0x6", fencegrpc.ElectionKey, "cashier"}, codes.InvalidArgument, 0},
				{"two tokens", []string{fencegrpc.TokenKey, "6", fencegrpc.TokenKey, "7", fencegrpc.ElectionKey, "cashier"}, codes.InvalidArgument, 0},
				{"another election", []string{fencegrpc.TokenKey, "6", fencegrpc.ElectionKey, "driver"}, codes.InvalidArgument, 0},
				{"no election", []string{fencegrpc.TokenKey, "6"}, codes.InvalidArgument, 0},
				{"a token far ahead of the clock", []string{fencegrpc.TokenKey, elector.MaxToken.String(), fencegrpc.ElectionKey, "cashier"}, codes.InvalidArgument, 0},
				{"the highest token that was served", []string{fencegrpc.TokenKey, "5", fencegrpc.ElectionKey, "cashier"}, codes.OK, 0},
			} {
				trailer, err := call(with(t, c.pairs...), conn, streams)
				if status.Code(err) != c.want {
					t.Errorf("%s: %v; want %v", c.what, err, c.want)
				}
				if highest, refused := fencegrpc.Refused(err, trailer); highest != c.highest || refused != (c.highest > 0) {
					t.Errorf("%s: Refused is %d, %v with the trailer %v", c.what, highest, refused, trailer)
				}
			}
		})
	}
}

type brokenKeeper struct{ error }

func (k brokenKeeper) Raise(context.Context, string, elector.Token) (elector.Token, error) {
	return 0, k.error
}

func TestKeeperFails(t *testing.T) {
	for _, failure := range []error{errors.New("the disk is full"), context.DeadlineExceeded} {
		conn := serve(t, &fencegrpc.Server{Fence: &elector.Fence{Keeper: brokenKeeper{failure}}}, nothing)
		for _, streams := range []bool{false, true} {
			if _, err := call(token(t, "5"), conn, streams); status.Code(err) != codes.Unavailable {
				t.Errorf("a token that could not be kept (%v), stream %v: %v", failure, streams, err)
			}
		}
	}
}

// A safe method needs no token; one that comes is checked.
func TestSafe(t *testing.T) {
	conn := serve(t, &fencegrpc.Server{Safe: func(method string) bool { return method == pb.TestService_EmptyCall_FullMethodName }}, nothing)
	client := pb.NewTestServiceClient(conn)
	if _, err := client.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
		t.Errorf("a safe method without a token: %v", err)
	}
	if _, err := client.EmptyCall(token(t, "5"), &pb.Empty{}); err != nil {
		t.Errorf("a safe method with a token: %v", err)
	}
	if _, err := call(token(t, "4"), conn, false); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a token that a safe method has made stale: %v", err)
	}
}

// While a write is under way, one with a higher token waits, and the older one's
// context ends: in a call, before the first message of a stream, for a message, and
// after the last.
func TestOlder(t *testing.T) {
	for _, what := range []string{"call", "open", "message", "end"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, finish, late := make(chan context.Context, 1), make(chan bool), make(chan bool, 1)
				first := true
				conn := serve(t, &fencegrpc.Server{}, func(ctx context.Context, now string) error {
					switch {
					case first && now == what:
						first = false
						begun <- ctx
						<-finish
						return ctx.Err()
					case !first:
						select {
						case late <- true:
						default:
						}
					}
					return nil
				})
				older, newer := make(chan error, 1), make(chan error, 1)
				go func() {
					_, err := call(token(t, "1"), conn, what != "call")
					older <- err
				}()
				ctx := <-begun
				go func() {
					_, err := call(token(t, "2"), conn, false)
					newer <- err
				}()
				synctest.Wait()
				if !errors.Is(context.Cause(ctx), elector.ErrStale) {
					t.Errorf("the context of the older write has the cause %v", context.Cause(ctx))
				}
				if len(late) > 0 {
					t.Error("a newer call is served beside an older write")
				}
				finish <- true
				if err := <-older; err == nil {
					t.Error("the older call has succeeded")
				}
				if err := <-newer; err != nil {
					t.Errorf("the newer call: %v", err)
				}
			})
		})
	}
}

// An idle stream keeps no newer leader out, and its next message is refused.
func TestIdle(t *testing.T) {
	t.Run("stream", func(t *testing.T) {
		conn := serve(t, &fencegrpc.Server{}, nothing)
		stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(token(t, "1"))
		if err != nil {
			t.Fatal(err)
		}
		message := func() error {
			if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
				return err
			}
			_, err := stream.Recv()
			return err
		}
		for range 2 {
			if err := message(); err != nil {
				t.Fatal(err)
			}
		}
		for _, streams := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(token(t, "2"), 10*time.Second) // it waits for ever where the stream is in
			defer cancel()
			if _, err := call(ctx, conn, streams); err != nil {
				t.Errorf("a newer call beside an idle stream: %v", err)
			}
		}
		err = message()
		if highest, refused := fencegrpc.Refused(err, stream.Trailer()); highest != 2 || !refused {
			t.Errorf("a message of an old leader's stream: %v, with the trailer %v", err, stream.Trailer())
		}
	})
}

// A stream with token 1, whose messages come from receive.
type scripted struct {
	grpc.ServerStream
	ctx     context.Context
	receive func() error
}

func (s *scripted) Context() context.Context { return s.ctx }
func (s *scripted) RecvMsg(any) error        { return s.receive() }
func (s *scripted) SetTrailer(metadata.MD)   {}

// run calls a handler with a stream behind the Fence.
func run(t *testing.T, fence *elector.Fence, receive func() error, handler func(grpc.ServerStream)) {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(fencegrpc.TokenKey, "1"))
	server := &fencegrpc.Server{Fence: fence}
	err := server.Stream()(nil, &scripted{ctx: ctx, receive: receive}, &grpc.StreamServerInfo{}, func(_ any, stream grpc.ServerStream) error {
		handler(stream)
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A handler that returns while a goroutine of its own receives leaves nothing inside
// the Fence. The race detector finds more than the loop does.
func TestReceivesAtTheEnd(t *testing.T) {
	for range 300 {
		var fence elector.Fence
		received, done := make(chan bool), make(chan bool)
		receive := func() error { received <- true; return nil }
		run(t, &fence, receive, func(stream grpc.ServerStream) {
			go func() {
				defer close(done)
				_ = stream.RecvMsg(nil)
			}()
			<-received
		})
		<-done
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := fence.Admit(ctx, "", 2)
		cancel()
		if err != nil {
			t.Fatalf("after the end of a stream: %v", err)
		}
	}
}

// After an error of a message, what the handler still does is fenced, or its context
// has ended.
func TestBrokenMessage(t *testing.T) {
	for name, overtaken := range map[string]bool{"inside": false, "overtaken": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fence elector.Fence
				broken := errors.New("the message is too large")
				receive := func() error {
					if overtaken {
						return errors.Join(broken, fence.Admit(t.Context(), "", 2))
					}
					return broken
				}
				run(t, &fence, receive, func(stream grpc.ServerStream) {
					if err := stream.RecvMsg(nil); !errors.Is(err, broken) {
						t.Errorf("got %v, want %v", err, broken)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err, ended := fence.Admit(ctx, "", 3), errors.Is(context.Cause(stream.Context()), elector.ErrStale)
					if !ended || !overtaken && err == nil {
						t.Errorf("beside a newer write, which got %v, the cause is %v", err, context.Cause(stream.Context()))
					}
				})
			})
		})
	}
}

// One connection serves one lease after the other. After the end of a lease nothing
// is sent.
func TestConn(t *testing.T) {
	conn := serve(t, &fencegrpc.Server{Election: "storm"}, nothing)
	store := memory.NewStore()
	for range 2 {
		l := storm.Lead(t, store)
		leased := &fencegrpc.Conn{Lease: l, Base: conn}
		client := pb.NewTestServiceClient(leased)
		ctx, cancel := context.WithCancel(with(t, fencegrpc.TokenKey, "7", "other", "kept")) // the lease's token replaces it
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil {
			t.Errorf("a message: %v", err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Errorf("an answer: %v", err)
		}
		if _, err := client.UnaryCall(ctx, &pb.SimpleRequest{}); err != nil {
			t.Errorf("a call: %v", err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := stream.Send(&pb.StreamingOutputCallRequest{}); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("a message after the end of the lease: %v", err)
		}
		cancel()
		leased.Base = nil // nothing may use it
		if _, err := client.UnaryCall(t.Context(), &pb.SimpleRequest{}); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("a call after the end of the lease: %v", err)
		}
		if _, err := client.FullDuplexCall(t.Context()); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("a stream after the end of the lease: %v", err)
		}
	}
}

// paused pauses after the check of the lease.
type paused struct{ *grpc.ClientConn }

func (p paused) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	storm.Pause()
	return p.ClientConn.Invoke(ctx, method, request, reply, options...)
}

func (p paused) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	storm.Pause()
	stream, err := p.ClientConn.NewStream(ctx, desc, method, options...)
	return pausedStream{stream}, err
}

type pausedStream struct{ grpc.ClientStream }

func (p pausedStream) SendMsg(message any) error {
	storm.Pause()
	return p.ClientStream.SendMsg(message)
}

// writes makes the service write to the resource.
func writes(r *storm.Resource) func(context.Context, string) error {
	return func(ctx context.Context, what string) error {
		if what == "call" || what == "message" {
			md, _ := metadata.FromIncomingContext(ctx)
			token, err := elector.ParseToken(md.Get(fencegrpc.TokenKey)[0])
			if err != nil {
				return err
			}
			r.Write(token)
		}
		return nil
	}
}

// outcome is what the storm wants to know of a call.
func outcome(err error, trailer metadata.MD) error {
	if _, refused := fencegrpc.Refused(err, trailer); refused {
		return elector.ErrStale
	}
	return err
}

func TestStorm(t *testing.T) {
	t.Run("unary", func(t *testing.T) {
		var r storm.Resource
		conn := serve(t, &fencegrpc.Server{}, writes(&r))
		storm.Run(t, &r, func(l *elector.Lease) error {
			trailer, err := call(t.Context(), &fencegrpc.Conn{Lease: l, Base: paused{conn}}, false)
			return outcome(err, trailer)
		})
	})
	t.Run("stream", func(t *testing.T) {
		var r storm.Resource
		conn := serve(t, &fencegrpc.Server{}, writes(&r))
		storm.Run(t, &r, func(l *elector.Lease) error {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := pb.NewTestServiceClient(&fencegrpc.Conn{Lease: l, Base: paused{conn}}).FullDuplexCall(ctx)
			if err != nil {
				return err
			}
			for range 5 {
				if err := stream.Send(&pb.StreamingOutputCallRequest{}); err != nil && !errors.Is(err, io.EOF) {
					return err
				}
				if _, err := stream.Recv(); err != nil {
					return outcome(err, stream.Trailer())
				}
			}
			return nil
		})
	})
}
