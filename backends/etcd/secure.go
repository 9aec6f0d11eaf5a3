package etcd

import (
	"context"
	"net"

	"google.golang.org/grpc/credentials"

	"github.com/elector-go/elector/internal/tlsfiles"
)

// secure makes the TLS of each connection with what the files have now.
type secure struct {
	credentials.TransportCredentials // without the files
	files                            tlsfiles.Files
}

func (s secure) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := s.files.For(authority)
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

func (s secure) Clone() credentials.TransportCredentials {
	return secure{s.TransportCredentials.Clone(), s.files}
}
