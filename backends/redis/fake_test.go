package redis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

// serving is what a server shows that may be used.
func serving() info {
	return info{"redis_version": "7.0.15", "redis_mode": "standalone", "role": "master", "connected_slaves": "0", "repl_backlog_active": "0", "second_repl_offset": "-1",
		"aof_enabled": "1", "maxmemory_policy": "noeviction", "loading": "0"}
}

func synced() map[string]string {
	return map[string]string{"appendfsync": "always", "no-appendfsync-on-rewrite": "no"}
}

// hang is no answer at all.
const hang = "hang"

// A fake server answers a command with the answer that it has for its first word.
type fake struct {
	listener net.Listener
	under    sync.WaitGroup
	news     chan string // first words, as far as there is room

	mutex   sync.Mutex
	info    info
	config  map[string]string        // nil: forbidden
	answers map[string]string        // in the protocol; empty: the connection is closed
	late    map[string]chan struct{} // until it is closed there is no answer
	asked   []string                 // first words
	conns   []net.Conn
}

func newFake(t testing.TB) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{listener: l, news: make(chan string, 1000), info: serving(), config: synced(), answers: map[string]string{"GET": "$-1\r\n", "EVALSHA": "*0\r\n"}}
	f.under.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.mutex.Lock()
			f.conns = append(f.conns, c)
			f.mutex.Unlock()
			f.under.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.drop()
		f.under.Wait()
	})
	return f
}

// drop ends all connections.
func (f *fake) drop() {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// set changes what the server is.
func (f *fake) set(change func()) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	change()
}

// count returns how often a command came, and forgets all.
func (f *fake) count(word string) (n int) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, asked := range f.asked {
		if asked == word {
			n++
		}
	}
	f.asked = nil
	return n
}

func (f *fake) serve(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		words, err := command(r)
		if err != nil {
			return
		}
		answer, late := f.answer(strings.ToUpper(words[0]))
		if late != nil {
			<-late
		}
		if answer == "" {
			return
		}
		if answer == hang {
			_, _ = io.Copy(io.Discard, r) // until the other end closes
			return
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// command reads a command as the client library writes it.
func command(r *bufio.Reader) ([]string, error) {
	number := func() (n int, err error) {
		line, err := r.ReadString('\n')
		if err == nil {
			n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		}
		return n, err
	}
	n, err := number()
	words := make([]string, n)
	for i := range words {
		length, err := number()
		if err != nil {
			return nil, err
		}
		word := make([]byte, length+2)
		if _, err := io.ReadFull(r, word); err != nil {
			return nil, err
		}
		words[i] = string(word[:length])
	}
	return words, err
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func (f *fake) answer(word string) (answer string, late <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.answerTo(word), f.late[word]
}

func (f *fake) answerTo(word string) string {
	f.asked = append(f.asked, word)
	select {
	case f.news <- word:
	default:
	}
	if answer, ok := f.answers[word]; ok {
		return answer
	}
	switch word {
	case "PING":
		return "+PONG\r\n"
	case "INFO":
		text := "# All\r\n"
		for _, name := range slices.Sorted(maps.Keys(f.info)) {
			text += name + ":" + f.info[name] + "\r\n"
		}
		return bulk(text)
	case "CONFIG":
		if f.config == nil {
			return "-NOPERM this user has no permissions to run the 'config|get' command\r\n"
		}
		text := fmt.Sprintf("*%d\r\n", 2*len(f.config))
		for name, value := range f.config {
			text += bulk(name) + bulk(value)
		}
		return text
	}
	return "-ERR unknown command '" + word + "'\r\n" // HELLO too: as an old server
}

// open opens a handle on the server.
func (f *fake) open(t testing.TB, o Options) (*Backend, error) {
	b, err := New(t.Context(), f.client(t, goredis.Options{}), &o)
	if err == nil {
		t.Cleanup(func() { b.Close() })
	}
	return b, err
}

// client is a client of the caller.
func (f *fake) client(t testing.TB, o goredis.Options) *goredis.Client {
	o.Addr = f.listener.Addr().String()
	client := goredis.NewClient(&o)
	t.Cleanup(func() { client.Close() })
	return client
}
