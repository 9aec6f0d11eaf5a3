package etcd

import (
	"context"
	"strings"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/elector-go/elector/internal/setup"
	"github.com/elector-go/elector/internal/storeurl"
)

// authenticate is the request that signs in.
const authenticate = "/etcdserverpb.Auth/Authenticate"

// A session signs in with user and password, and gives each request the token. The servers
// compare the password with a slow hash, so many processes that sign in together wait for each
// other: a sign-in outlives the request that needs it. The client library throws it away at
// the request's deadline, and makes one for each watch.
type session struct {
	login storeurl.Login
	tries *setup.Tries

	mutex sync.Mutex
	conn  *grpc.ClientConn
	token string // "" also if the servers want none
	in    bool   // it has signed in, and the token was not refused
}

func newSession(login storeurl.Login) *session {
	s := &session{login: login}
	s.tries = setup.NewTries(setup.Longest, s.signIn)
	return s
}

func (s *session) signIn(ctx context.Context) error {
	user, password, err := s.login()
	if err != nil {
		return err
	}
	s.mutex.Lock()
	conn := s.conn
	s.mutex.Unlock()
	answer, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: user, Password: password})
	if err != nil && !is(err, rpctypes.ErrAuthNotEnabled) {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.token, s.in = answer.GetToken(), true
	return nil
}

// authorized returns a context for a request on conn, with the token.
func (s *session) authorized(ctx context.Context, conn *grpc.ClientConn) (_ context.Context, token string, err error) {
	for {
		s.mutex.Lock()
		s.conn = conn
		token, in := s.token, s.in
		s.mutex.Unlock()
		if in {
			if token != "" {
				ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
			}
			return ctx, token, nil
		}
		if err := s.tries.Do(ctx); err != nil {
			return nil, "", err
		}
	}
}

// refused reports whether the servers have refused a token, which is not used again then. They
// have not applied the request.
func (s *session) refused(err error, token string) bool {
	if err == nil || !is(err, rpctypes.ErrInvalidAuthToken) && !is(err, rpctypes.ErrUserEmpty) && !is(err, rpctypes.ErrAuthOldRevision) {
		return false
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.token == token {
		s.in = false
	}
	return true
}

// dialOptions put the session around all requests.
func (s *session) dialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.unary), grpc.WithChainStreamInterceptor(s.stream)}
}

// unary makes a request, and once again after a sign-in if its token is refused.
func (s *session) unary(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if method == authenticate {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	for try := 0; ; try++ {
		with, token, err := s.authorized(ctx, conn)
		if err != nil {
			return err
		}
		err = invoke(with, method, request, reply, conn, options...)
		if !s.refused(err, token) || try == 1 {
			return err
		}
	}
}

// stream opens a stream of watches.
func (s *session) stream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
	with, token, err := s.authorized(ctx, conn)
	if err != nil {
		return nil, err
	}
	opened, err := open(with, desc, conn, method, options...)
	if err != nil {
		s.refused(err, token)
		return nil, err
	}
	return authorizedStream{opened, s, token}, nil
}

// authorizedStream notes when the servers refuse the token of a stream.
type authorizedStream struct {
	grpc.ClientStream
	session *session
	token   string
}

func (s authorizedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if answer, ok := m.(*etcdserverpb.WatchResponse); ok && err == nil && answer.Canceled {
		for _, reason := range []error{rpctypes.ErrInvalidAuthToken, rpctypes.ErrUserEmpty, rpctypes.ErrAuthOldRevision} {
			if strings.HasSuffix(answer.CancelReason, reason.Error()) {
				s.session.refused(reason, s.token)
			}
		}
	}
	s.session.refused(err, s.token)
	return err
}
