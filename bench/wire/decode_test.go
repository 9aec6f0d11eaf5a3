package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) { leak.Main(m) }

// frame is one of HTTP/2's.
func frame(kind, flags byte, stream uint32, payload ...byte) []byte {
	n := len(payload)
	b := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), payload...)
}

// grpc is a message of so many bytes, none of them zero.
func grpc(size int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0}, uint32(size))
	return append(b, bytes.Repeat([]byte{'m'}, size)...)
}

// calls is a client that makes two calls, one with an empty message, and keeps
// two streams open whose messages are cut over frames.
func calls() []byte {
	const headers, settings, ping, window, reset = 1, 4, 6, 8, 3
	long, longer := grpc(300), grpc(70000)
	return slices.Concat(
		[]byte(preface),
		frame(settings, 0, 0, make([]byte, 6)...),
		frame(headers, 4, 1, make([]byte, 90)...),
		frame(frameData, 1, 1, grpc(20)...), // 1
		frame(ping, 0, 0, make([]byte, 8)...),
		frame(headers, 4, 3, make([]byte, 90)...),
		frame(frameData, 1, 1<<31|3, grpc(0)...), // 2, with the reserved bit
		frame(headers, 4, 5, make([]byte, 90)...),
		frame(headers, 4, 7, make([]byte, 90)...),
		frame(frameData, 0, 5, long[:3]...),
		frame(frameData, 0, 7, slices.Concat(grpc(1), grpc(0), grpc(2))...), // 3, 4, 5
		frame(frameData, 0, 5),
		frame(frameData, 0, 5, long[3:100]...),                                                 // 6
		frame(frameData, flagPadded, 7, slices.Concat([]byte{9}, grpc(4), make([]byte, 9))...), // 7
		frame(frameData, flagPadded, 5, slices.Concat([]byte{0}, long[100:], longer[:50])...),  // 8
		frame(frameData, flagPadded, 7, slices.Concat([]byte{255}, make([]byte, 255))...),      // nothing
		frame(window, 0, 5, make([]byte, 4)...),
		frame(frameData, 0, 1<<31|5, longer[50:20000]...),
		frame(frameData, 0, 7, grpc(30)[:10]...), // 9, and it ends there
		frame(reset, 0, 7, make([]byte, 4)...),
		frame(frameData, 0, 5, longer[20000:]...),
		frame(frameData, 1, 5),
	)
}

// packet is one of MySQL's.
func packet(number byte, payload ...byte) []byte {
	n := len(payload)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number}, payload...)
}

// commands is a MySQL client that logs in, sends three commands, one of them long, and
// ends its session.
func commands() []byte {
	return slices.Concat(
		packet(1, make([]byte, 90)...),
		packet(3, make([]byte, 20)...),                          // more of the login
		packet(0, 3, 0, 0, 0),                                   // 1
		packet(0, append([]byte{3}, make([]byte, 70000)...)...), // 2
		packet(0, 0x0e),                                         // 3
		packet(0, mysqlQuit),
	)
}

// session is a ZooKeeper client.
func session() []byte {
	frame := func(number int32, rest int) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+rest))
		b = binary.BigEndian.AppendUint32(b, uint32(number))
		return append(b, bytes.Repeat([]byte{0xff}, rest)...)
	}
	return slices.Concat(
		frame(0, 40), // opens the session
		frame(1, 20), frame(pingNumber, 4), frame(2, 0), frame(3, 3000), frame(-8, 30), frame(pingNumber, 4),
	)
}

// before is a message of a PostgreSQL client that has no session yet.
func before(code uint32, rest ...byte) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(8+len(rest)))
	return append(binary.BigEndian.AppendUint32(b, code), rest...)
}

// frontend is a message of a PostgreSQL client that has a session.
func frontend(kind byte, size int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(4+size))
	return append(b, bytes.Repeat([]byte{'S'}, size)...)
}

// statements is a client that asks for TLS and what GSS has, gets neither, and
// executes three statements.
func statements() []byte {
	return slices.Concat(
		before(tlsRequest), before(gssRequest), before(3<<16, make([]byte, 60)...), frontend('p', 50),
		frontend('Q', 200),
		frontend('P', 90), frontend('D', 6), frontend('S', 0),
		frontend('B', 70), frontend('E', 5), frontend('S', 0),
		frontend('C', 3), frontend('X', 0),
	)
}

func requests() []byte {
	return []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n" +
		"POST / HTTP/1.1\r\nContent-Length: 31\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: body\r\n\r\n\n" +
		"\r\nPOST /a HTTP/1.1\r\ncontent-length:0\r\n\r\n" +
		"PUT /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" +
		"1D;x=y\r\nGET / HTTP/1.1\r\nHost: chunk\r\n\r\n" +
		"3\r\n\r\n\r\r\n0\r\nSum: 1\r\n\r\n" +
		"HEAD / HTTP/1.0\nHost: h\n\n" +
		"POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx" +
		"GET / HTTP/1.1\r\n\r\n" +
		"GET / HTTP/1.1\r\n\r\n")
}

// Requests are counted however the stream is cut.
func TestRequestsAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, kind      string
		stream          []byte
		requests, pings int
	}{
		{"calls and streams", stores.Etcd, calls(), 9, 0},
		{"a session", stores.ZooKeeper, session(), 6, 2},
		{"statements", stores.Postgres, statements(), 3, 0},
		{"a later version", stores.Postgres, slices.Concat(before(3<<16|2, make([]byte, 30)...), frontend('Q', 0)), 1, 0},
		{"a cancellation", stores.Postgres, before(cancelRequest, make([]byte, 8)...), 0, 0},
		{"commands", stores.MySQL, commands(), 3, 0},
		{"messages and a ping", stores.NATS, []byte("CONNECT {}\r\nPING\r\nSUB _INBOX.a.* 1\r\nPUB a 10\r\nPUB b 1\r\nx\r\nHPUB a _INBOX.a.1 4 5\r\nabcd\n\r\nPONG\r\n"), 3, 1},
		{"words", stores.Redis, []byte("*3\r\n$5\r\nhello\r\n$1\r\n2\r\n$0\r\n\r\n*2\r\n$4\r\ninfo\r\n$11\r\nreplication\r\n*2\r\n$3\r\nget\r\n$6\r\n*1\r\n$4\r\n*1\r\n$7\r\nevalsha\r\n"), 4, 2},
		{"requests", stores.DynamoDB, requests(), 8, 0},
		{"requests", stores.GCS, requests(), 8, 0},
	} {
		for _, size := range []int{1, 2, 3, 5, 7, 8, 9, 12, 13, 64, 1000, len(c.stream)} {
			d, err := newDecoder(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			requests, pings := 0, 0
			for piece := range slices.Chunk(c.stream, size) {
				r, p, err := d.decode(bytes.Clone(piece))
				if err != nil {
					t.Fatalf("%s on %s in pieces of %d: %v", c.name, c.kind, size, err)
				}
				requests, pings = requests+r, pings+p
			}
			if requests != c.requests || pings != c.pings {
				t.Errorf("%s on %s in pieces of %d: %d requests, %d pings; want %d, %d",
					c.name, c.kind, size, requests, pings, c.requests, c.pings)
			}
		}
	}
}

// What is complete leaves nothing behind for its stream.
func TestStreamsAreForgotten(t *testing.T) {
	e := &etcd{}
	if _, _, err := e.decode(calls()); err != nil || len(e.messages) != 0 {
		t.Errorf("error %v, %d streams remembered; want none", err, len(e.messages))
	}
}

// A protocol that is not the store's is an error, and not a wrong number.
func TestOtherProtocolsAreRefused(t *testing.T) {
	tls := []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	for _, c := range []struct {
		name, kind string
		stream     []byte
	}{
		{"TLS", stores.Etcd, tls},
		{"TLS", stores.ZooKeeper, tls},
		{"TLS", stores.Postgres, tls},
		{"TLS", stores.MySQL, tls},
		{"TLS", stores.NATS, append(slices.Clone(tls), '\n')},
		{"an empty line", stores.NATS, []byte("\r\n")},
		{"a size that is none", stores.NATS, []byte("PUB a x\r\n")},
		{"a line without an end", stores.NATS, bytes.Repeat([]byte("x"), 5000)},
		{"TLS that was agreed on", stores.MySQL, slices.Concat(packet(1, make([]byte, 32)...), tls)},
		{"an empty packet", stores.MySQL, slices.Concat(packet(1, make([]byte, 90)...), packet(0), packet(0, 3))},
		{"TLS that was agreed on", stores.Postgres, slices.Concat(before(tlsRequest), tls)},
		{"TLS", stores.DynamoDB, append(tls, '\n')},
		{"HTTP/1.1", stores.Etcd, requests()},
		{"HTTP/2", stores.DynamoDB, calls()},
		{"a short message", stores.Postgres, slices.Concat(before(3<<16), []byte{'Q', 0, 0, 0, 3})},
		{"a short startup", stores.Postgres, []byte{0, 0, 0, 7, 0, 3, 0, 0}},
		{"too much padding", stores.Etcd, slices.Concat([]byte(preface), frame(frameData, flagPadded, 1, 3, 0, 0))},
		{"no room for the padding", stores.Etcd, slices.Concat([]byte(preface), frame(frameData, flagPadded, 1))},
		{"a negative length", stores.DynamoDB, []byte("GET / HTTP/1.1\r\nContent-Length: -1\r\n")},
		{"a chunk of no size", stores.DynamoDB, []byte("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n")},
		{"a chunk that is too long", stores.DynamoDB, []byte("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n")},
	} {
		for _, size := range []int{1, 7, len(c.stream)} {
			d, err := newDecoder(c.kind)
			if err != nil {
				t.Fatal(err)
			}
			for piece := range slices.Chunk(c.stream, size) {
				if _, _, err = d.decode(piece); err != nil {
					break
				}
			}
			if err == nil {
				t.Errorf("%s on %s in pieces of %d is no error", c.name, c.kind, size)
			}
		}
	}
	if _, err := newDecoder("clay tablets"); err == nil || !strings.Contains(err.Error(), `"clay tablets"`) {
		t.Errorf("error %v; want one that names the kind", err)
	}
}
