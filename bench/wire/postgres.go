package wire

import (
	"encoding/binary"
	"fmt"
)

// postgres counts the messages of the frontend after which the server executes
// something and answers. A message is a byte of type, four of length, which
// count themselves but not the type, and the rest. Those before the session
// have a code after the length and no type.
type postgres struct {
	head    []byte // of the message under way
	left    int    // bytes of it that come after the head
	started bool   // whether the startup message came
}

// Codes of what comes before the session.
const (
	cancelRequest = 1234<<16 | 5678
	tlsRequest    = 1234<<16 | 5679
	gssRequest    = 1234<<16 | 5680
	protocolMajor = 3 // in the upper half; 3.0 and later
)

func (p *postgres) decode(b []byte) (requests, _ int, err error) {
	for len(b) > 0 {
		if p.left > 0 {
			n := min(p.left, len(b))
			p.left -= n
			b = b[n:]
			continue
		}
		size := 5
		if !p.started {
			size = 8
		}
		n := min(size-len(p.head), len(b))
		p.head = append(p.head, b[:n]...)
		b = b[n:]
		if len(p.head) < size {
			continue
		}
		request, err := p.message()
		if err != nil {
			return requests, 0, err
		}
		if request {
			requests++
		}
		p.head = p.head[:0]
	}
	return requests, 0, nil
}

// message begins the message whose head is there.
func (p *postgres) message() (request bool, err error) {
	if p.started {
		length := int32(binary.BigEndian.Uint32(p.head[1:]))
		if length < 4 {
			return false, fmt.Errorf("a message of %d bytes: this is not PostgreSQL's protocol", length)
		}
		p.left = int(length) - 4
		return p.head[0] == 'Q' || p.head[0] == 'S', nil
	}
	length, code := int32(binary.BigEndian.Uint32(p.head)), binary.BigEndian.Uint32(p.head[4:])
	switch {
	case code == tlsRequest || code == gssRequest: // answered N: the session comes next
	case code == cancelRequest: // nothing comes next
	case code>>16 == protocolMajor:
		p.started = true
	default:
		// What follows a tlsRequest that was answered S begins with 0x16.
		return false, fmt.Errorf("a session that begins with %x: this is not PostgreSQL's protocol without TLS; set sslmode=disable", p.head)
	}
	if length < 8 {
		return false, fmt.Errorf("a startup message of %d bytes: this is not PostgreSQL's protocol", length)
	}
	p.left = int(length) - 8
	return false, nil
}
