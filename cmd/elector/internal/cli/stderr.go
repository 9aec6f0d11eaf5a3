package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"time"
)

// A relay writes lines without blocking those who have something to say: a reader of
// stderr that hangs must not cost a lease. It drops lines that nothing reads. On a
// terminal it shows a state below the lines.
type relay struct {
	to       io.Writer
	terminal bool
	lines    chan []byte
	states   chan string
	done     chan struct{}

	mutex  sync.Mutex
	closed bool
}

func newRelay(to io.Writer, terminal bool) *relay {
	r := &relay{to: to, terminal: terminal, lines: make(chan []byte, 256), states: make(chan string), done: make(chan struct{})}
	go r.write()
	return r
}

// Write implements io.Writer. It never blocks.
func (r *relay) Write(line []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.closed {
		select {
		case r.lines <- bytes.Clone(line):
		default:
		}
	}
	return len(line), nil
}

// show replaces the state; an empty one removes it.
func (r *relay) show(state string) {
	if !r.terminal {
		return
	}
	select {
	case r.states <- state:
	case <-r.done:
	case <-time.After(time.Second): // the terminal does not read
	}
}

// close writes what was said, for at most a second.
func (r *relay) close() {
	r.show("")
	r.mutex.Lock()
	r.closed = true
	close(r.lines)
	r.mutex.Unlock()
	select {
	case <-r.done:
	case <-time.After(time.Second):
	}
}

func (r *relay) write() {
	defer close(r.done)
	const clear = "\r\x1b[K"
	var tick <-chan time.Time
	if r.terminal {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		tick = ticker.C
	}
	state := ""
	for turn := 0; ; turn++ {
		select {
		case line, more := <-r.lines:
			if !more {
				return
			}
			if state != "" {
				fmt.Fprint(r.to, clear)
			}
			r.to.Write(line)
		case next := <-r.states:
			if state = next; state == "" {
				fmt.Fprint(r.to, clear)
			}
		case <-tick:
		}
		if state != "" {
			fmt.Fprintf(r.to, "%s%c %s", clear, `|/-\`[turn%4], state)
		}
	}
}

// lively reports whether stderr is a terminal that can show a changing line.
func (t *tool) lively() bool {
	kind, _ := t.env("TERM")
	return isTerminal(t.err) && kind != "dumb" && kind != ""
}
