package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// redis counts the commands. A command is a line with the number of its words, and for
// each word a line with its length, and the word. What a connection asks first is a ping,
// and so is INFO, which goes in one pipeline with the command that follows.
type redis struct {
	line  []byte // under way
	words int    // of the command that are still to come
	left  int    // bytes of the word under way, with the end of its line
	first bool   // that word is the first one
	word  []byte // the first one, as far as it came
}

var redisPings = []string{"HELLO", "AUTH", "CLIENT", "SELECT", "PING", "INFO", "CONFIG"}

func (r *redis) decode(b []byte) (requests, pings int, err error) {
	for _, c := range b {
		if r.left > 0 {
			if r.left--; r.first && r.left >= 2 {
				r.word = append(r.word, c)
			}
			if r.first && r.left == 0 {
				r.first = false
				requests++
				if slices.Contains(redisPings, strings.ToUpper(string(r.word))) {
					pings++
				}
			}
			continue
		}
		if r.line = append(r.line, c); c != '\n' {
			if len(r.line) > 20 {
				return requests, pings, fmt.Errorf("%q is not of the protocol of Redis", r.line)
			}
			continue
		}
		sign := byte('*')
		if r.words > 0 {
			sign = '$'
		}
		n, err := strconv.Atoi(strings.TrimSuffix(string(r.line[1:]), "\r\n"))
		if err != nil || r.line[0] != sign || n < 0 || sign == '*' && n == 0 {
			return requests, pings, fmt.Errorf("%q is not of the protocol of Redis", r.line)
		}
		if r.line = r.line[:0]; sign == '*' {
			r.words, r.first, r.word = n, true, r.word[:0]
		} else {
			r.words, r.left = r.words-1, n+2
		}
	}
	return requests, pings, nil
}
