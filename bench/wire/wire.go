// Package wire counts what a client sends to a store and gets from it: bytes,
// connections, and requests, by the store's own protocol. A [Proxy] on
// 127.0.0.1 stands between the two and passes everything on unchanged.
//
// What a request is:
//
//   - etcd: a gRPC message that the client sends. A call is one, and so are, on
//     the streams that stay open, each watch that is made or taken back and
//     each keep-alive. What HTTP/2 sends for itself, its pings too, is not.
//   - ZooKeeper: a frame, pings included, because they are what holds a session.
//     They are counted apart as well. The frame that opens the session is not.
//   - PostgreSQL: a round trip that the server has to execute, which is a Query
//     or a Sync. Asking for TLS, logging in and cancelling are not.
//   - Redis: a command, those of a pipeline each. What opens a connection, pings, and the
//     INFO that goes in one pipeline with a read are counted apart as well.
//   - NATS: a message that the client publishes, to JetStream or to a stream, and a ping.
//     Pings are counted apart as well.
//   - MySQL: a command, but for the one that ends the session. Logging in is not.
//   - DynamoDB, Cloud Storage, Azure Blob, S3, Consul and Kubernetes: an HTTP/1.1 request.
//
// Nothing can be counted inside TLS; such a connection is an error, see
// [Proxy.Close].
package wire

import (
	"fmt"

	"github.com/elector-go/elector/internal/proof/stores"
)

// Counts are sums over the connections of a proxy.
type Counts struct {
	Requests int64 // of the client
	Pings    int64 // of ZooKeeper, NATS and Redis; they are in Requests too
	Sent     int64 // bytes from the client to the store, without the headers of TCP and IP
	Received int64 // bytes from the store to the client
	Opened   int64 // connections that the client has made
	Open     int64 // those of them that are open now
}

// Bytes is the sum of both directions.
func (c Counts) Bytes() int64 { return c.Sent + c.Received }

// Since returns what came after an earlier count of the same proxy. Open stays
// what it is now.
func (c Counts) Since(earlier Counts) Counts {
	return Counts{
		Requests: c.Requests - earlier.Requests,
		Pings:    c.Pings - earlier.Pings,
		Sent:     c.Sent - earlier.Sent,
		Received: c.Received - earlier.Received,
		Opened:   c.Opened - earlier.Opened,
		Open:     c.Open,
	}
}

// Plus adds the counts of another proxy.
func (c Counts) Plus(other Counts) Counts {
	return Counts{
		Requests: c.Requests + other.Requests,
		Pings:    c.Pings + other.Pings,
		Sent:     c.Sent + other.Sent,
		Received: c.Received + other.Received,
		Opened:   c.Opened + other.Opened,
		Open:     c.Open + other.Open,
	}
}

// A decoder finds the requests in what a client sends on one connection. It
// gets all of it in pieces, cut anywhere, and keeps none of them. A request is
// counted once its beginning tells that it is one. After an error it gets no
// more.
type decoder interface {
	decode(piece []byte) (requests, pings int, err error)
}

func newDecoder(kind string) (decoder, error) {
	switch kind {
	case stores.Etcd:
		return &etcd{}, nil
	case stores.ZooKeeper:
		return &zookeeper{}, nil
	case stores.Postgres:
		return &postgres{}, nil
	case stores.MySQL:
		return &mysql{}, nil
	case stores.NATS:
		return &nats{}, nil
	case stores.Redis:
		return &redis{}, nil
	case stores.DynamoDB, stores.GCS, stores.AzureBlob, stores.Consul, stores.Kubernetes, stores.S3:
		return &http{}, nil
	}
	return nil, fmt.Errorf("wire: the protocol of a store of kind %q is not known here", kind)
}
