// Package redis shows why Redis with a replica is no store of elections, and that one server
// which syncs each write is.
package redis

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	child.Prepare()
	leak.Main(m)
}

// A primary that syncs each write to its disk, a replica, and three Sentinels. The
// replica loses its connection, the primary acknowledges a swap and dies, and the
// Sentinels promote the replica. It does not know of the swap, and acknowledges another
// one on the same version: two candidates win.
func TestFailoverAcknowledgesTwoSwapsOnOneVersion(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	durable := stores.RedisDurable
	primary := begin(t, func() (*stores.Store, error) { return stores.StartRedis(ctx, durable...) })
	door := newDoor(t, primary.Address)
	host, port, err := net.SplitHostPort(door.Addr().String())
	must(t, err)
	replica := begin(t, func() (*stores.Store, error) {
		return stores.StartRedis(ctx, append(durable, "--replicaof", host, port)...)
	})

	// The swap is one: of two on one version, the second is refused.
	before := dial(t, primary.Address)
	if !before.swap("", "version 1, A leads") || before.swap("", "version 1, B leads") {
		t.Fatal("the script does not compare and swap")
	}
	await(t, ctx, "the replica to have version 1", func() bool { return before.number("WAIT", "1", "100") == 1 })
	var sentinels []client
	for range 3 {
		s := begin(t, func() (*stores.Store, error) { return stores.StartSentinel(ctx, door.Addr().String()) })
		sentinels = append(sentinels, dial(t, s.Address))
	}
	await(t, ctx, "the Sentinels to know each other and the replica", func() bool {
		for _, s := range sentinels {
			known := s.table("SENTINEL", "MASTER", "primary")
			if known["num-slaves"] != "1" || known["num-other-sentinels"] != "2" {
				return false
			}
		}
		return true
	})

	// A network cut between primary and replica. Redis goes on.
	door.Close()
	before.number("CLIENT", "KILL", "TYPE", "replica")
	after := dial(t, replica.Address)
	await(t, ctx, "the replica's link to be down", func() bool {
		return strings.Contains(fmt.Sprint(after.do("INFO", "replication")), "master_link_status:down")
	})
	first := before.swap("version 1, A leads", "version 2, B leads")
	t.Logf("the primary acknowledges the swap of B: %v, and WAIT 1 then counts %d replicas", first, before.number("WAIT", "1", "100"))
	must(t, primary.Kill())
	await(t, ctx, "the Sentinels to promote the replica", func() bool {
		for _, s := range sentinels {
			if at, _ := s.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "primary").([]any); len(at) != 2 || net.JoinHostPort(fmt.Sprint(at[0]), fmt.Sprint(at[1])) != replica.Address {
				return false
			}
		}
		return true
	})
	promoted := dial(t, replica.Address) // a promotion ends the connections of before
	second := promoted.swap("version 1, A leads", "version 2, C leads")
	t.Logf("the promoted replica acknowledges the swap of C, on the same version: %v", second)
	if !first || !second {
		t.Error("this does not show two acknowledged swaps on one version: package redis refuses replicas because of them")
	}
}

func begin(t *testing.T, start func() (*stores.Store, error)) *stores.Store {
	t.Helper()
	s, err := start()
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

// await asks until the answer is yes.
func await(t *testing.T, ctx context.Context, what string, ask func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !ask() {
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("waiting in vain for %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A door leads to a server until it is closed. Connections that were made before stay.
type door struct{ net.Listener }

func newDoor(t *testing.T, to string) door {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var under sync.WaitGroup
	under.Go(func() {
		for {
			outside, err := l.Accept()
			if err != nil {
				return
			}
			inside, err := net.Dial("tcp", to)
			if err != nil {
				outside.Close()
				continue
			}
			for _, way := range [][2]net.Conn{{outside, inside}, {inside, outside}} {
				under.Go(func() {
					_, _ = io.Copy(way[0], way[1]) // until one end is closed
					way[0].Close()
					way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() { // the servers have ended
		l.Close()
		under.Wait()
	})
	return door{l}
}

// A client is a connection that speaks RESP.
type client struct {
	*testing.T
	conn net.Conn
	read *bufio.Reader
}

func dial(t *testing.T, address string) client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
	return client{t, conn, bufio.NewReader(conn)}
}

// swap replaces the record if it is prev, in one step, and reports whether it did.
func (c client) swap(prev, next string) bool {
	return c.number("EVAL", `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`, "1", "election", prev, next) == 1
}

func (c client) number(words ...string) int64 {
	n, ok := c.do(words...).(int64)
	if !ok {
		c.Fatalf("%s: no number", words[0])
	}
	return n
}

func (c client) table(words ...string) map[string]string {
	all := map[string]string{}
	list, _ := c.do(words...).([]any)
	for i := 0; i+1 < len(list); i += 2 {
		all[fmt.Sprint(list[i])] = fmt.Sprint(list[i+1])
	}
	return all
}

// do sends a command and returns its answer: an int64, a string, a []any or nil.
func (c client) do(words ...string) any {
	c.Helper()
	command := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		command += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	_, err := io.WriteString(c.conn, command)
	must(c.T, err)
	return c.answer()
}

func (c client) answer() any {
	c.Helper()
	line, err := c.read.ReadString('\n')
	must(c.T, err)
	kind, text := line[0], strings.TrimSpace(line[1:])
	if kind == '+' {
		return text
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case kind == '-' || err != nil:
		c.Fatalf("Redis answers %s", line)
	case kind == ':':
		return n
	case n < 0:
		return nil
	case kind == '$':
		value := make([]byte, n+2)
		_, err := io.ReadFull(c.read, value)
		must(c.T, err)
		return string(value[:n])
	}
	list := make([]any, n)
	for i := range list {
		list[i] = c.answer()
	}
	return list
}
