package network

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// An echo is a server that answers every line with the same line, and tells
// what it has heard.
type echo struct {
	address string
	heard   chan string
}

func newEcho(t *testing.T) *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	e := &echo{l.Addr().String(), make(chan string, 100)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					e.heard <- line
					io.WriteString(conn, line)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return e
}

func (e *echo) wants(t *testing.T, line string) {
	t.Helper()
	select {
	case got := <-e.heard:
		if got != line {
			t.Fatalf("the server heard %q, want %q", got, line)
		}
	case <-time.After(enough):
		t.Fatalf("the server has not heard %q within %v", line, enough)
	}
}

func (e *echo) wantsNothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-e.heard:
		t.Fatalf("the server heard %q through a broken network", got)
	default:
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newProxy(t *testing.T, upstream string) *Proxy {
	p, err := New(upstream)
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

func dial(t *testing.T, p *Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Address())
	must(t, err)
	must(t, conn.SetDeadline(time.Now().Add(enough)))
	t.Cleanup(func() { conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	_, err := io.WriteString(conn, line)
	must(t, err)
}

func wantsAnswer(t *testing.T, conn net.Conn, line string) {
	t.Helper()
	got := make([]byte, len(line))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != line {
		t.Fatalf("the answer is %q, error %v, want %q", got, err, line)
	}
}

// wantsEnd reads until the connection ends, and wants nothing before that.
func wantsEnd(t *testing.T, conn net.Conn) error {
	t.Helper()
	n, err := conn.Read(make([]byte, 100))
	var deadline net.Error
	if n != 0 || errors.As(err, &deadline) && deadline.Timeout() {
		t.Fatalf("got %d bytes, error %v, want the connection's end", n, err)
	}
	return err
}

// wantsSilence wants nothing to come for a moment, and no end either.
func wantsSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	must(t, conn.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %d bytes, error %v, want silence on an open connection", n, err)
	}
	must(t, conn.SetReadDeadline(time.Now().Add(enough)))
}

// until waits until the count of what a fault has done satisfies.
func until(t *testing.T, p *Proxy, what string, satisfied func(Count) bool) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for overdue := time.After(enough); !satisfied(p.Count()); {
		select {
		case <-again.C:
		case <-overdue:
			t.Fatalf("%s is not counted within %v: %+v", what, enough, p.Count())
		}
	}
}

func TestPasses(t *testing.T) {
	e := newEcho(t)
	p := newProxy(t, e.address)
	conn := dial(t, p)
	say(t, conn, "hello\n")
	e.wants(t, "hello\n")
	wantsAnswer(t, conn, "hello\n")
	if got := p.Count(); got != (Count{}) {
		t.Errorf("nothing was broken, and the count is %+v", got)
	}
}

// What is silent on open connections and new ones, and whether the server
// hears what is said.
func TestSilence(t *testing.T) {
	for fault, hears := range map[Fault]bool{Cut: false, LoseRequests: false, LoseReplies: true} {
		t.Run(string(fault), func(t *testing.T) {
			e := newEcho(t)
			p := newProxy(t, e.address)
			open := dial(t, p)
			say(t, open, "before\n")
			e.wants(t, "before\n")
			wantsAnswer(t, open, "before\n")

			must(t, p.Break(fault))
			fresh := dial(t, p)
			for i, conn := range []net.Conn{open, fresh} {
				before := p.Count()
				say(t, conn, "lost\n")
				if hears {
					e.wants(t, "lost\n")
					until(t, p, "a lost reply", func(c Count) bool { return c.Replies == before.Replies+5 && c.Requests == 0 })
				} else {
					until(t, p, "a lost request", func(c Count) bool { return c.Requests == before.Requests+5 && c.Replies == 0 })
				}
				if p.Count() == before {
					t.Errorf("connection %d: the fault is not counted", i)
				}
			}
			for _, conn := range []net.Conn{open, fresh} {
				wantsSilence(t, conn)
			}
			must(t, p.Heal())
			for _, conn := range []net.Conn{open, fresh} {
				wantsEnd(t, conn)
			}
			e.wantsNothing(t)

			healed := dial(t, p)
			say(t, healed, "after\n")
			e.wants(t, "after\n")
			wantsAnswer(t, healed, "after\n")
		})
	}
}

func TestResetAndRefuse(t *testing.T) {
	e := newEcho(t)
	p := newProxy(t, e.address)
	for range 3 {
		for _, fault := range []Fault{Reset, Refuse} {
			open := dial(t, p)
			say(t, open, "before\n")
			e.wants(t, "before\n")
			wantsAnswer(t, open, "before\n")
			before := p.Count()
			must(t, p.Break(fault))
			if err := wantsEnd(t, open); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("%s: an open connection ends with %v, want a reset", fault, err)
			}
			fresh, err := net.Dial("tcp", p.Address())
			if err == nil {
				must(t, fresh.SetDeadline(time.Now().Add(enough)))
				_, err = fresh.Read(make([]byte, 1))
				fresh.Close()
				if fault == Refuse {
					t.Error("a new connection was not refused")
				}
			}
			want := syscall.ECONNRESET
			if fault == Refuse {
				want = syscall.ECONNREFUSED
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: a new connection gives %v, want %v", fault, err, want)
			}
			if p.Count().Connections <= before.Connections {
				t.Errorf("%s: the reset is not counted: %+v", fault, p.Count())
			}
			must(t, p.Heal())
			healed := dial(t, p)
			say(t, healed, "after\n")
			e.wants(t, "after\n")
			wantsAnswer(t, healed, "after\n")
		}
	}
}

func TestDelays(t *testing.T) {
	const d = 100 * time.Millisecond
	for _, test := range []struct {
		fault   Fault
		up      time.Duration // what is set; then a request takes at least
		down    time.Duration
		atLeast time.Duration
	}{
		{Latency, d, d, 2 * d},
		{Latency, d, 0, d},
		{SlowReplies, 10 * enough, d, d}, // which delays no request
		{Trickle, 0, 0, d},
	} {
		e := newEcho(t)
		p := newProxy(t, e.address)
		must(t, p.Delay(test.up, test.down))
		conn := dial(t, p)
		say(t, conn, "a first line that is delayed by nothing\n")
		e.wants(t, "a first line that is delayed by nothing\n")
		wantsAnswer(t, conn, "a first line that is delayed by nothing\n")
		must(t, p.Break(test.fault))
		before := time.Now()
		say(t, conn, "a line that is longer than sixteen bytes\n")
		wantsAnswer(t, conn, "a line that is longer than sixteen bytes\n")
		if took := time.Since(before); took < test.atLeast {
			t.Errorf("%s of %v and %v: a request took %v, want at least %v", test.fault, test.up, test.down, took, test.atLeast)
		}
		if c := p.Count(); c.Sum() == 0 || c.Connections != 0 {
			t.Errorf("%s: the count is %+v", test.fault, c)
		}
		// The connection lives on.
		must(t, p.Heal())
		<-e.heard
		say(t, conn, "after\n")
		e.wants(t, "after\n")
		wantsAnswer(t, conn, "after\n")
	}
}

// Connections end, and a new one is made after 3 s, or when the network is healed.
func TestSlowToConnect(t *testing.T) {
	e := newEcho(t)
	p := newProxy(t, e.address)
	old := dial(t, p)
	say(t, old, "before\n")
	wantsAnswer(t, old, "before\n")
	for _, heals := range []bool{false, true} {
		must(t, p.Break(SlowToConnect))
		if err := wantsEnd(t, old); err == nil {
			t.Error("a connection stays open")
		}
		before := time.Now()
		old = dial(t, p)
		say(t, old, "slow\n")
		if heals {
			must(t, p.Heal())
		}
		wantsAnswer(t, old, "slow\n")
		if took := time.Since(before); took < slowness && !heals {
			t.Errorf("a new connection took %v", took)
		}
	}
	if p.Count().Connections != 2 {
		t.Errorf("the count is %+v", p.Count())
	}
}

// A request that is delayed arrives although its client has gone, and Heal
// does not wait for what is delayed.
func TestDelayedRequestArrives(t *testing.T) {
	e := newEcho(t)
	p := newProxy(t, e.address)
	must(t, p.Delay(10*enough, 0))
	must(t, p.Break(Latency))
	conn := dial(t, p)
	say(t, conn, "late\n")
	until(t, p, "the request", func(c Count) bool { return c.Requests == 5 })
	must(t, conn.Close())
	e.wantsNothing(t)
	must(t, p.Delay(0, 0)) // changes what is in force
	e.wants(t, "late\n")
}

func TestOneFaultReplacesAnother(t *testing.T) {
	e := newEcho(t)
	p := newProxy(t, e.address)
	for range 3 {
		for _, f := range Faults {
			must(t, p.Break(f))
			if conn, err := net.Dial("tcp", p.Address()); err == nil {
				io.WriteString(conn, "something\n")
				t.Cleanup(func() { conn.Close() })
			}
		}
	}
	must(t, p.Heal())
	must(t, p.Heal())
	conn := dial(t, p)
	say(t, conn, "after\n")
	wantsAnswer(t, conn, "after\n")
}

func TestMisuse(t *testing.T) {
	p := newProxy(t, "127.0.0.1:1") // no server listens
	if err := wantsEnd(t, dial(t, p)); err == nil {
		t.Error("a connection to nowhere stays open")
	}
	if p.Break("rain") == nil || p.Delay(-1, 0) == nil {
		t.Error("an unknown fault or a negative delay is taken")
	}
	must(t, p.Close())
	must(t, p.Close())
	if p.Break(Cut) == nil {
		t.Error("a closed proxy breaks")
	}
}

// Clients come, talk and go while the network is broken and healed: nothing
// is left behind, which TestMain looks for, and in the end all works.
func TestManyClients(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	var servers, clients sync.WaitGroup
	servers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			servers.Go(func() { defer conn.Close(); io.Copy(conn, conn) })
		}
	})
	p := newProxy(t, l.Addr().String())
	done := make(chan struct{})
	var tries atomic.Int64
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				tries.Add(1)
				conn, err := net.Dial("tcp", p.Address())
				if err != nil {
					continue
				}
				conn.SetDeadline(time.Now().Add(5 * time.Millisecond))
				for err == nil {
					if _, err = io.WriteString(conn, "something to say"); err == nil {
						_, err = conn.Read(make([]byte, 16))
					}
				}
				conn.Close()
			}
		})
	}
	again := time.NewTicker(100 * time.Microsecond)
	defer again.Stop()
	overdue := time.After(enough)
	someTry := func() {
		for before := tries.Load(); tries.Load() < before+10; {
			select {
			case <-again.C:
			case <-overdue:
				t.Fatalf("the clients do not get on within %v", enough)
			}
		}
	}
	for range 10 {
		for _, f := range Faults {
			must(t, p.Break(f))
			someTry()
		}
		must(t, p.Heal())
		someTry()
	}
	close(done)
	clients.Wait()
	l.Close()
	must(t, p.Close())
	servers.Wait()
}
