package etcd

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector/backends"
)

// isProbe reports whether a transaction is that of opening. It changes nothing.
func isProbe(r *pb.TxnRequest) bool {
	return len(r.Compare) == 1 && r.Compare[0].GetCreateRevision() == math.MaxInt64 && len(r.Success) == 1 && r.Success[0].GetRequestRange() != nil
}

// likeEtcd is the answer of etcd to the probe.
func likeEtcd() *pb.TxnResponse {
	read := &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}}}
	within := &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 1}, Responses: []*pb.ResponseOp{read}}
	return &pb.TxnResponse{Header: &pb.ResponseHeader{Revision: 1}, Responses: []*pb.ResponseOp{{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: within}}}}
}

// A lookalike answers the probe in its own way.
type lookalike struct {
	pb.UnimplementedKVServer
	pb.UnimplementedMaintenanceServer
	version string
	answer  func(*pb.TxnResponse)
	err     error
	others  int // requests that are not the probe
}

func (s *lookalike) Txn(_ context.Context, r *pb.TxnRequest) (*pb.TxnResponse, error) {
	if !isProbe(r) {
		s.others++
	}
	if s.err != nil {
		return nil, s.err
	}
	answer := likeEtcd()
	s.answer(answer)
	return answer, nil
}

func (s *lookalike) Range(context.Context, *pb.RangeRequest) (*pb.RangeResponse, error) {
	return &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: 1}}, nil
}

func (s *lookalike) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	if s.version == "" {
		return nil, status.Error(codes.Unimplemented, "unknown method")
	}
	return &pb.StatusResponse{Header: &pb.ResponseHeader{}, Version: s.version}, nil
}

// What does not compare as etcd does is refused when the handle opens.
func TestAlike(t *testing.T) {
	for name, c := range map[string]struct {
		version string
		answer  func(*pb.TxnResponse)
		err     error
		want    error
		says    string
	}{
		"etcd":                                 {answer: func(*pb.TxnResponse) {}},
		"comparisons ignored":                  {version: "3.5.0-like", answer: func(r *pb.TxnResponse) { r.Succeeded = true }, want: backends.ErrMisconfigured, says: `version "3.5.0-like"`},
		"comparisons in a transaction ignored": {answer: func(r *pb.TxnResponse) { r.Responses[0].GetResponseTxn().Succeeded = true }, want: backends.ErrMisconfigured, says: "does not report its version"},
		"no transaction in a transaction":      {version: "3.2.32", answer: func(r *pb.TxnResponse) { r.Responses[0] = r.Responses[0].GetResponseTxn().Responses[0] }, want: backends.ErrMisconfigured, says: `version "3.2.32"`},
		"no answer in a transaction":           {version: "3.2.32", answer: func(r *pb.TxnResponse) { r.Responses = nil }, want: backends.ErrMisconfigured, says: "3.3 or later"},
		"etcd 3.2":                             {version: "3.2.32", err: rpctypes.ErrGRPCEmptyKey, want: backends.ErrMisconfigured, says: `version "3.2.32"`},
		"kine":                                 {version: "3.5.13", err: status.Error(codes.InvalidArgument, "etcdserver: unsupported operations in txn request"), want: backends.ErrMisconfigured, says: "unsupported operations"},
		"no transactions at all":               {err: status.Error(codes.Unimplemented, "unknown method Txn"), want: backends.ErrMisconfigured, says: "unknown method Txn"},
		"a user without rights":                {err: rpctypes.ErrGRPCPermissionDenied, want: backends.ErrDenied, says: "grant-permission"},
		"a login that is wanted":               {err: rpctypes.ErrGRPCUserEmpty, want: backends.ErrDenied, says: "user and password"},
		"rights that were just changed":        {err: rpctypes.ErrGRPCAuthOldRevision, want: backends.ErrUnavailable, says: "were just changed"},
		"a member that has just started":       {err: status.Error(codes.FailedPrecondition, "etcdserver: not capable"), want: backends.ErrUnavailable, says: "not capable"},
		"a learner":                            {err: status.Error(codes.FailedPrecondition, "etcdserver: rpc not supported for learner"), want: backends.ErrUnavailable, says: "learner"},
		"an older etcd at its quota":           {err: rpctypes.ErrGRPCNoSpace},
		"a server without a leader":            {err: rpctypes.ErrGRPCNoLeader, want: backends.ErrUnavailable, says: "have a leader"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &lookalike{version: c.version, answer: c.answer, err: c.err}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			pb.RegisterKVServer(server, s)
			pb.RegisterMaintenanceServer(server, s)
			served := make(chan error, 1)
			go func() { served <- server.Serve(listener) }()
			b, err := open(t.Context(), &url.URL{Scheme: "etcd", Host: listener.Addr().String()})
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
			server.Stop()
			if err := <-served; err != nil {
				t.Error(err)
			}
			if s.others != 0 {
				t.Errorf("opening sent %d other transactions", s.others)
			}
		})
	}
}

// A server that speaks HTTP 1 is named as such, for example etcd 2. It may be a proxy
// whose servers are down, so that may pass.
func TestOlderAPI(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	_, err := open(t.Context(), &url.URL{Scheme: "etcd", Host: s.Listener.Addr().String()})
	if !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "an etcd before version 3") {
		t.Errorf("got %v", err)
	}
}
