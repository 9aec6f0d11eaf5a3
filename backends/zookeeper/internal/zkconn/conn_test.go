package zkconn

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends/zookeeper/internal/zktest"
)

// connect starts a session that the client library would need an hour to give
// up.
func connect(t *testing.T, patience time.Duration, all ...*zktest.Server) *Conn {
	t.Helper()
	var hosts []string
	for _, s := range all {
		hosts = append(hosts, s.Address)
	}
	c, err := dial(hosts, nil, 2*time.Hour, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(time.Minute):
		t.Fatalf("nothing within a minute: %s", what)
	}
}

// A server that has gone dark is given up in time to find another one, whether
// it does not greet or does not answer.
func TestDarkServerIsLeft(t *testing.T) {
	silent, dark := zktest.NewServer(t, false), zktest.NewServer(t, true)
	c := connect(t, 50*time.Millisecond, silent, dark)
	await(t, c.ready, "a server that does not greet is left for the next one")
	if _, err := c.Sync("/a"); err == nil {
		t.Error("a request that was not answered returned no error")
	}
	await(t, dark.Left, "a server that does not answer is left")
	if dark.Requests.Load() != 1 {
		t.Errorf("%d requests were sent, want 1", dark.Requests.Load())
	}
}

// The client library pauses, and forgets what it has not sent, after a round
// through all servers and not before.
func TestHostsTakeTurns(t *testing.T) {
	s := newServers(t.Context(), []string{"a", "b"}, nil, time.Second)
	expect := func(host string, pause bool) {
		t.Helper()
		if got, p := s.Next(); got != host || p != pause {
			t.Errorf("got %s, pause %v; want %s, pause %v", got, p, host, pause)
		}
	}
	expect("a", false)
	expect("b", false)
	select {
	case <-s.exhausted:
		t.Error("the second was not tried yet")
	default:
	}
	expect("a", true)
	await(t, s.exhausted, "all have been tried")
	expect("b", false)
	s.Connected()
	expect("a", true) // it has hung up at once
	s.Connected()
	s.since = s.since.Add(-lasting)
	expect("b", false)
	expect("a", false)
	expect("b", true)
}

// A fault of the client library must not block Close.
func TestCloseEndsInAnyCase(t *testing.T) {
	c := &Conn{ended: nil} // never closed
	done := make(chan struct{})
	go func() {
		c.drain(time.Millisecond)
		close(done)
	}()
	await(t, done, "drain gives up")
}

// The reason why there is no session may pass, even one that opening fails for
// good with: the error shows it and does not wrap it.
func TestNoSessionMayPass(t *testing.T) {
	c := &Conn{servers: newServers(t.Context(), []string{"a"}, nil, time.Second)}
	c.servers.fail(ErrProtocol)
	if _, err := c.Connected(); err == nil || errors.Is(err, ErrProtocol) || !strings.Contains(err.Error(), ErrProtocol.Error()) {
		t.Errorf("got %v", err)
	}
}
