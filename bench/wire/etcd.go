package wire

import (
	"encoding/binary"
	"errors"
)

// etcd counts gRPC messages in an HTTP/2 connection (RFC 9113). After the
// preface come frames; those of type DATA hold the messages of their stream,
// cut without regard to them.
type etcd struct {
	preface int    // how many bytes of it came
	head    []byte // of the frame under way
	stream  uint32 // of the DATA frame under way
	data    int    // bytes that are left of it
	padded  bool   // whether its next byte says how many of them are padding
	skip    int    // bytes to pass over: padding, and frames of other types

	messages map[uint32]*message // under way, by stream
}

// A message is a byte that says whether it is compressed, four with its length,
// and the rest.
type message struct {
	head int // bytes of the first five that came
	left uint32
}

const (
	preface      = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	frameHead    = 9
	messageHead  = 5
	frameData    = 0
	frameReset   = 3 // RST_STREAM
	flagPadded   = 8
	streamNumber = 1<<31 - 1 // without the reserved bit
)

func (e *etcd) decode(b []byte) (requests, _ int, err error) {
	for len(b) > 0 {
		switch {
		case e.preface < len(preface):
			if b[0] != preface[e.preface] {
				return requests, 0, errors.New("this is not HTTP/2 without TLS")
			}
			e.preface++
			b = b[1:]
		case e.padded:
			padding := int(b[0])
			if e.data--; padding > e.data {
				return requests, 0, errors.New("an HTTP/2 frame has more padding than bytes")
			}
			e.padded = false
			e.data -= padding
			e.skip = padding
			b = b[1:]
		case e.data > 0:
			n := min(e.data, len(b))
			requests += e.content(b[:n])
			e.data -= n
			b = b[n:]
		case e.skip > 0:
			n := min(e.skip, len(b))
			e.skip -= n
			b = b[n:]
		default:
			n := min(frameHead-len(e.head), len(b))
			e.head = append(e.head, b[:n]...)
			b = b[n:]
			if len(e.head) == frameHead {
				if err := e.frame(); err != nil {
					return requests, 0, err
				}
			}
		}
	}
	return requests, 0, nil
}

// frame begins the frame whose head is there.
func (e *etcd) frame() error {
	length := int(e.head[0])<<16 | int(e.head[1])<<8 | int(e.head[2])
	kind, flags := e.head[3], e.head[4]
	stream := binary.BigEndian.Uint32(e.head[5:]) & streamNumber
	e.head = e.head[:0]
	if kind != frameData {
		e.skip = length
		if kind == frameReset {
			delete(e.messages, stream)
		}
		return nil
	}
	e.stream, e.data, e.padded = stream, length, flags&flagPadded != 0
	if e.padded && length == 0 {
		return errors.New("an HTTP/2 frame has more padding than bytes")
	}
	return nil
}

// content counts the messages that begin in a piece of a stream.
func (e *etcd) content(b []byte) (begun int) {
	m := e.messages[e.stream]
	if m == nil {
		m = &message{}
		if e.messages == nil {
			e.messages = make(map[uint32]*message)
		}
		e.messages[e.stream] = m
	}
	for len(b) > 0 {
		if m.head == messageHead && m.left == 0 {
			*m = message{} // the one before is complete
		}
		if m.head < messageHead {
			if m.head > 0 {
				m.left = m.left<<8 | uint32(b[0])
			}
			b = b[1:]
			if m.head++; m.head == messageHead {
				begun++
			}
			continue
		}
		n := min(int(m.left), len(b))
		m.left -= uint32(n)
		b = b[n:]
	}
	if m.head == messageHead && m.left == 0 {
		delete(e.messages, e.stream)
	}
	return begun
}
