package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// http counts the requests in an HTTP/1.1 connection (RFC 9112).
type http struct {
	part    httpPart
	line    []byte // under way
	left    uint64 // bytes of the body, or of the chunk, that are left
	length  uint64 // as the header says
	chunked bool
}

// An httpPart is what comes next in a request.
type httpPart int

const (
	requestLine httpPart = iota
	header
	body
	chunkSize
	chunk
	chunkEnd
	trailer
)

// longestLine is more than servers accept.
const longestLine = 1 << 20

func (h *http) decode(b []byte) (requests, _ int, err error) {
	for len(b) > 0 {
		if h.part == body || h.part == chunk {
			n := min(h.left, uint64(len(b)))
			h.left -= n
			b = b[n:]
			if h.left == 0 {
				h.part = map[httpPart]httpPart{body: requestLine, chunk: chunkEnd}[h.part]
			}
			continue
		}
		c := b[0]
		b = b[1:]
		if c != '\n' {
			if h.line = append(h.line, c); len(h.line) > longestLine {
				return requests, 0, errors.New("a line without an end: this is not HTTP/1.1")
			}
			continue
		}
		request, err := h.next(strings.TrimSuffix(string(h.line), "\r"))
		if err != nil {
			return requests, 0, err
		}
		if request {
			requests++
		}
		h.line = h.line[:0]
	}
	return requests, 0, nil
}

// next takes a line, and says whether it is the last of a request's header.
func (h *http) next(line string) (request bool, err error) {
	switch h.part {
	case requestLine:
		if line == "" {
			return false, nil // servers bear empty lines between requests
		}
		if words := strings.Split(line, " "); len(words) != 3 || !strings.HasPrefix(words[2], "HTTP/1.") {
			return false, errors.New("a request that does not begin like one: this is not HTTP/1.1 without TLS")
		}
		h.part, h.length, h.chunked = header, 0, false
	case header:
		if line != "" {
			return false, h.field(line)
		}
		switch {
		case h.chunked:
			h.part = chunkSize
		case h.length > 0:
			h.part, h.left = body, h.length
		default:
			h.part = requestLine
		}
		return true, nil
	case chunkSize:
		size, _, _ := strings.Cut(line, ";")
		if h.left, err = strconv.ParseUint(strings.TrimSpace(size), 16, 63); err != nil {
			return false, fmt.Errorf("the size of a chunk: %w", err)
		}
		if h.part = chunk; h.left == 0 {
			h.part = trailer
		}
	case chunkEnd:
		if line != "" {
			return false, errors.New("a chunk is longer than it says")
		}
		h.part = chunkSize
	case trailer:
		if line == "" {
			h.part = requestLine
		}
	}
	return false, nil
}

// field looks for those that say how long the body is.
func (h *http) field(line string) (err error) {
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimSpace(value)
	switch strings.ToLower(name) {
	case "content-length":
		if h.length, err = strconv.ParseUint(value, 10, 63); err != nil {
			return fmt.Errorf("the header's Content-Length: %w", err)
		}
	case "transfer-encoding":
		h.chunked = strings.HasSuffix(strings.ToLower(value), "chunked")
	}
	return nil
}
