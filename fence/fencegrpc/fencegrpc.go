// Package fencegrpc carries fencing tokens over gRPC: a Conn sends the token of a
// lease with each call, and a Server's interceptors let a service refuse the calls,
// and the messages of streams, of an old leader.
//
// A refusal has the code FailedPrecondition, which clients do not repeat, and the
// highest token seen in the trailer elector-fencing-token: see Refused. A call
// without a token, with a malformed one, with another election's, or with one that
// Fence.MaxAhead refuses has the code InvalidArgument; one whose token could not be
// kept has Unavailable. A call waits for older ones until its own deadline.
//
// Authenticate before the interceptors: a client that forges a high token locks all
// others out.
package fencegrpc

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// The keys of the metadata.
const (
	TokenKey    = "elector-fencing-token"
	ElectionKey = "elector-election"
)

// A Server fences a service. The zero value of each field means the default. A
// Server must not be copied after its first call.
type Server struct {
	// Fence admits the tokens. Default one of its own, in memory. Share one
	// between all services of a resource.
	Fence *elector.Fence

	// Election is the name of the election whose tokens count. Calls that name
	// another one, or none, are refused. Partition N of the group NAME has the
	// election NAME.p.N. Default any.
	Election string

	// Resource names the resource that a method changes. The tokens of two
	// partitions of a group cannot be compared, so each partition is a resource of
	// its own: make a Server for each, and let your interceptor choose by
	// what the call changes. Default one for all methods.
	Resource func(fullMethod string) string

	// Safe reports whether a method changes nothing, and so needs no token. A
	// token that comes all the same is checked. Default no method is.
	Safe func(fullMethod string) bool

	own elector.Fence
}

// Unary returns an interceptor that serves a call under the Fence. The context of
// the call ends with cause ErrStale when one with a higher token waits.
func (s *Server) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		if s.safe(ctx, info.FullMethod) {
			return handler(ctx, request)
		}
		token, err := s.token(ctx)
		if err != nil {
			return nil, err
		}
		inside, leave, err := s.fence().Enter(ctx, s.resource(info.FullMethod), token)
		if err != nil {
			return nil, refusal(ctx, err, func(m metadata.MD) { grpc.SetTrailer(ctx, m) })
		}
		defer leave()
		return handler(inside, request)
	}
}

// Stream returns an interceptor that serves a stream under the Fence, except while
// the handler waits for a message. So an idle stream keeps no newer leader out, and
// a message of an old one is refused however long its stream has been open. The
// context of the stream ends with cause ErrStale when a call or message with a
// higher token waits, or when a message is refused. The handler must then return, and
// must be done with a message before it receives the next. If it receives an error
// other than io.EOF, it must write only while its context has not ended.
//
// A handler that sends to a client which has stopped reading waits for the
// connection to end: set [google.golang.org/grpc/keepalive.ServerParameters].
func (s *Server) Stream() grpc.StreamServerInterceptor {
	return func(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if s.safe(stream.Context(), info.FullMethod) {
			return handler(service, stream)
		}
		token, err := s.token(stream.Context())
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(stream.Context())
		defer cancel(nil)
		f := &fenced{ServerStream: stream, ctx: ctx, cancel: cancel, fence: s.fence(), resource: s.resource(info.FullMethod), token: token}
		if err := f.enter(); err != nil {
			return err
		}
		defer f.end()
		return handler(service, f)
	}
}

func (s *Server) fence() *elector.Fence {
	if s.Fence == nil {
		return &s.own
	}
	return s.Fence
}

func (s *Server) resource(method string) string {
	if s.Resource == nil {
		return ""
	}
	return s.Resource(method)
}

// safe reports whether a call passes without a token.
func (s *Server) safe(ctx context.Context, method string) bool {
	return s.Safe != nil && s.Safe(method) && len(metadata.ValueFromIncomingContext(ctx, TokenKey)) == 0
}

// token reads the token of a call.
func (s *Server) token(ctx context.Context) (elector.Token, error) {
	tokens, elections := metadata.ValueFromIncomingContext(ctx, TokenKey), metadata.ValueFromIncomingContext(ctx, ElectionKey)
	switch {
	case len(tokens) != 1:
		return 0, status.Errorf(codes.InvalidArgument, "this call needs one fencing token in the metadata %s, and has %d", TokenKey, len(tokens))
	case s.Election != "" && (len(elections) != 1 || elections[0] != s.Election):
		return 0, status.Errorf(codes.InvalidArgument, "the fencing token is of election %.140q; this resource is protected by %q", elections, s.Election)
	}
	token, err := elector.ParseToken(tokens[0])
	if err != nil {
		return 0, status.Error(codes.InvalidArgument, err.Error())
	}
	return token, nil
}

// refusal returns the status for an error of Enter with ctx.
func refusal(ctx context.Context, err error, trailer func(metadata.MD)) error {
	var stale *elector.StaleError
	switch {
	case errors.As(err, &stale):
		trailer(metadata.Pairs(TokenKey, stale.Highest.String()))
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, elector.ErrInvalid):
		return status.Error(codes.InvalidArgument, err.Error())
	case ctx.Err() != nil: // err may be another context's, of the Keeper say
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.Unavailable, err.Error())
}

// A fenced stream is inside the Fence except during RecvMsg.
type fenced struct {
	grpc.ServerStream
	ctx      context.Context
	cancel   context.CancelCauseFunc
	fence    *elector.Fence
	resource string
	token    elector.Token

	mutex sync.Mutex // for handlers that receive in a goroutine
	leave func()     // may be called more than once
	ended bool       // the handler has returned
}

// Context implements [grpc.ServerStream].
func (f *fenced) Context() context.Context { return f.ctx }

// RecvMsg implements [grpc.ServerStream].
func (f *fenced) RecvMsg(message any) error {
	f.exchange(func() {})
	err := f.ServerStream.RecvMsg(message)
	// A handler may keep its write for the end of the stream, or for an error.
	if refused := f.enter(); refused != nil && (err == nil || errors.Is(err, io.EOF)) {
		return refused
	}
	return err
}

// enter enters the Fence, or ends the context of the stream.
func (f *fenced) enter() error {
	inside, leave, err := f.fence.Enter(f.ctx, f.resource, f.token)
	if err != nil {
		refused := refusal(f.ctx, err, f.SetTrailer)
		f.cancel(err)
		return refused
	}
	f.exchange(leave)
	context.AfterFunc(inside, func() {
		if cause := context.Cause(inside); errors.Is(cause, elector.ErrStale) {
			f.cancel(cause)
		}
	})
	return nil
}

// exchange leaves the Fence, and is left by leave from now on.
func (f *fenced) exchange(leave func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.leave != nil {
		f.leave()
	}
	if f.leave = leave; f.ended {
		leave()
	}
}

// end leaves the Fence for good.
func (f *fenced) end() {
	f.mutex.Lock()
	f.ended = true
	f.mutex.Unlock()
	f.exchange(func() {})
}

// A Conn sends a lease's token and election with each call. It makes no call, and
// sends no message of a stream, when the lease is over, and returns the lease's
// error then; end the context of a stream that is left so. Make a Conn, and a client
// on it, for each lease: they are small, and share the connections of Base.
//
//	client := pb.NewLedgerClient(&fencegrpc.Conn{Lease: lease, Base: conn})
type Conn struct {
	Lease backends.Lease           // an *elector.Lease or a *partition.Lease
	Base  grpc.ClientConnInterface // a *grpc.ClientConn
}

// Invoke implements [grpc.ClientConnInterface].
func (c *Conn) Invoke(ctx context.Context, method string, request, reply any, options ...grpc.CallOption) error {
	a, err := c.Lease.Acquisition()
	if err != nil {
		return err
	}
	return c.Base.Invoke(with(ctx, a), method, request, reply, options...)
}

// NewStream implements [grpc.ClientConnInterface].
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	a, err := c.Lease.Acquisition()
	if err != nil {
		return nil, err
	}
	stream, err := c.Base.NewStream(with(ctx, a), desc, method, options...)
	if err != nil {
		return nil, err
	}
	return checked{stream, c.Lease}, nil
}

// with returns a context that sends the acquisition's token and election.
func with(ctx context.Context, a backends.Acquisition) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(TokenKey, elector.Token(a.Record.Token).String())
	md.Set(ElectionKey, a.Election)
	return metadata.NewOutgoingContext(ctx, md)
}

// A checked stream sends messages only while the lease is valid.
type checked struct {
	grpc.ClientStream
	lease backends.Lease
}

// SendMsg implements [grpc.ClientStream].
func (c checked) SendMsg(message any) error {
	if _, err := c.lease.Acquisition(); err != nil {
		return err
	}
	return c.ClientStream.SendMsg(message)
}

// Refused reports whether a call ended with a Server's refusal of a stale token,
// and the highest token that it has seen. The trailer is that of the call, see
// [grpc.Trailer] and [grpc.ClientStream]. The caller must stop its work.
func Refused(err error, trailer metadata.MD) (highest elector.Token, refused bool) {
	if status.Code(err) != codes.FailedPrecondition || len(trailer.Get(TokenKey)) != 1 {
		return 0, false
	}
	highest, err = elector.ParseToken(trailer.Get(TokenKey)[0])
	return highest, err == nil
}
