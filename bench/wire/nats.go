package wire

import (
	"bytes"
	"fmt"
	"strconv"
)

// nats counts the messages that the client publishes: each of them is a request, to
// JetStream's API or to a stream. A line is a command; that of a message ends with the
// size of what follows.
type nats struct {
	line []byte // under way
	left int    // bytes of a message that come after its line
}

const natsLine = 4096 // more than a line has by default

func (n *nats) decode(b []byte) (requests, pings int, err error) {
	for len(b) > 0 {
		if n.left > 0 {
			some := min(n.left, len(b))
			n.left -= some
			b = b[some:]
			continue
		}
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			n.line, b = append(n.line, b...), nil
		} else {
			n.line, b = append(n.line, b[:end]...), b[end+1:]
		}
		if len(n.line) > natsLine {
			return requests, pings, fmt.Errorf("a line of more than %d bytes: this is not NATS's protocol without TLS", natsLine)
		}
		if end < 0 {
			continue
		}
		fields := bytes.Fields(n.line)
		n.line = n.line[:0]
		if len(fields) == 0 {
			return requests, pings, fmt.Errorf("an empty line: this is not NATS's protocol")
		}
		switch verb := string(bytes.ToUpper(fields[0])); verb {
		case "PUB", "HPUB":
			size, err := strconv.Atoi(string(fields[len(fields)-1]))
			if err != nil || size < 0 {
				return requests, pings, fmt.Errorf("a message of %.20q bytes", fields[len(fields)-1])
			}
			requests++
			n.left = size + len("\r\n")
		case "PING":
			requests++
			pings++
		case "CONNECT", "PONG", "SUB", "UNSUB":
		default:
			return requests, pings, fmt.Errorf("the command %.20q: this is not NATS's protocol without TLS", verb)
		}
	}
	return requests, pings, nil
}
