package wire

import "fmt"

// mysql counts the commands. A packet is three bytes of length, a number and the
// length's bytes. The numbers of a command begin with 0, and those of a login with 1,
// because the server begins that. Nothing answers the command that ends the session.
type mysql struct {
	head    []byte // of the packet under way, and its first byte
	left    int    // bytes of it that come after the head
	started bool   // whether the login came
}

const (
	mysqlLogin   = 1  // the number of its packet
	mysqlAsksTLS = 32 // the length of the packet that asks for TLS, which is a login cut short
	mysqlQuit    = 1  // the command that ends the session
)

func (m *mysql) decode(b []byte) (requests, _ int, err error) {
	for len(b) > 0 {
		if m.left > 0 {
			n := min(m.left, len(b))
			m.left -= n
			b = b[n:]
			continue
		}
		n := min(5-len(m.head), len(b))
		m.head = append(m.head, b[:n]...)
		b = b[n:]
		if len(m.head) < 5 {
			continue
		}
		length, number := int(m.head[0])|int(m.head[1])<<8|int(m.head[2])<<16, m.head[3]
		switch {
		case length == 0:
			return requests, 0, fmt.Errorf("an empty packet: this is not MySQL's protocol, or a password that is none")
		case !m.started && (number != mysqlLogin || length <= mysqlAsksTLS):
			return requests, 0, fmt.Errorf("a session that begins with %x: this is not MySQL's protocol without TLS", m.head)
		case m.started && number == 0 && m.head[4] != mysqlQuit:
			requests++
		}
		m.started, m.left, m.head = true, length-1, m.head[:0]
	}
	return requests, 0, nil
}
