package wire

import (
	"encoding/binary"
	"fmt"
)

// zookeeper counts frames: four bytes of length, four of the request's number,
// and the rest. The first of a connection opens the session.
type zookeeper struct {
	head   []byte // of the frame under way, at most 8 bytes
	left   int    // bytes of it that come after the head
	opened bool
}

const (
	// pingNumber is what the protocol has for pings instead of a number.
	pingNumber = -2

	// longestFrame is more than any server accepts: jute.maxbuffer is 1 MB by
	// default. Longer ones are another protocol.
	longestFrame = 1 << 28
)

func (z *zookeeper) decode(b []byte) (requests, pings int, err error) {
	for len(b) > 0 {
		if z.left > 0 {
			n := min(z.left, len(b))
			z.left -= n
			b = b[n:]
			continue
		}
		n := min(8-len(z.head), len(b))
		z.head = append(z.head, b[:n]...)
		b = b[n:]
		if len(z.head) < 8 {
			continue
		}
		length := int32(binary.BigEndian.Uint32(z.head))
		number := int32(binary.BigEndian.Uint32(z.head[4:]))
		if length < 4 || length > longestFrame {
			return requests, pings, fmt.Errorf("a frame of %d bytes: this is not ZooKeeper's protocol without TLS", length)
		}
		z.head = z.head[:0]
		z.left = int(length) - 4
		switch {
		case !z.opened:
			z.opened = true
		case number == pingNumber:
			requests++
			pings++
		default:
			requests++
		}
	}
	return requests, pings, nil
}
