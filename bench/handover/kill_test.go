package handover

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
	"github.com/elector-go/elector/internal/proof/stores"
)

// fakeOverTCP is a library whose store lets that connection lead which came
// first of those that are open: a process that is killed has a successor at
// once. The store answers each with a byte when it leads.
var fakeOverTCP = peers.Library{
	Name:  "fake",
	Store: "tcp",
	Open: func(ctx context.Context, c peers.Config) (peers.Candidate, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.Address)
		return overTCP{conn}, err
	},
}

type overTCP struct{ conn net.Conn }

func (o overTCP) Campaign(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { o.conn.SetReadDeadline(time.Unix(1, 0)) })()
	_, err := io.ReadFull(o.conn, make([]byte, 1))
	return err
}

func (o overTCP) Leads() bool                  { return false }
func (o overTCP) Renewal() []byte              { return nil }
func (o overTCP) Resign(context.Context) error { return nil }
func (o overTCP) Close() error                 { return o.conn.Close() }

// serve is the store of fakeOverTCP. All are elected at once if many is set,
// and no candidate after the first if none is.
func serve(t *testing.T, many, none bool) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	go func() {
		for first := true; ; first = false {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if !many {
					<-turn
					defer func() { turn <- struct{}{} }()
				}
				if first || !none {
					conn.Write([]byte{1})
				}
				io.Copy(io.Discard, conn)
			}()
		}
	}()
	return l.Addr().String()
}

func testKill(address string) kill {
	return kill{
		library: fakeOverTCP,
		config:  peers.Config{Name: "test", Address: address, TTL: time.Second},
		settle:  20 * time.Millisecond,
		renew:   10 * time.Millisecond,
		phase:   5 * time.Millisecond,
		longest: time.Minute,
	}
}

func TestKill(t *testing.T) {
	took, err := testKill(serve(t, false, false)).play(within(t))
	if err != nil || took <= 0 {
		t.Errorf("a successor after %v, error %v", took, err)
	}
}

func TestKillFails(t *testing.T) {
	noStore, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	noStore.Close()
	for _, c := range []struct {
		name   string
		kill   kill
		change func(*kill)
		want   string
	}{
		{"both lead", testKill(serve(t, true, false)), func(k *kill) { k.settle = time.Minute }, "elected before the leader was killed"},
		{"nobody follows", testKill(serve(t, false, true)), func(k *kill) { k.longest = time.Millisecond }, "no candidate took over within 1ms"},
		{"no store", testKill(noStore.Addr().String()), nil, "ended by itself; it printed:\n\tdial tcp"},
		{"an unknown library", testKill(""), func(k *kill) { k.library.Name = "other" }, `there is no library "other" on tcp`},
	} {
		if c.change != nil {
			c.change(&c.kill)
		}
		if took, err := c.kill.play(within(t)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: a successor after %v, error %v; want %q", c.name, took, err, c.want)
		}
	}
}

// The figures of a takeover: the rounds, and beside them the bounds in words
// and as multiples of the TTL.
func TestTakeover(t *testing.T) {
	o := Options{TTL: time.Second}
	s := &stores.Store{Address: serve(t, true, false)}
	r := rules{renew: 10 * time.Millisecond, earliest: 700 * time.Millisecond, latest: 1200 * time.Millisecond, why: "of the rules"}
	if _, err := o.takeover(within(t), fakeOverTCP, r, s, "run", make(chan struct{}, 2)); err == nil || !strings.Contains(err.Error(), "before the leader was killed") {
		t.Errorf("error %v", err)
	}
	o.Short = true
	s.Address = serve(t, false, false)
	figures, err := o.takeover(within(t), fakeOverTCP, r, s, "run", make(chan struct{}, 1))
	if err != nil || len(figures) != 2 {
		t.Fatalf("%v, error %v", figures, err)
	}
	for _, f := range figures {
		if f.Subject != results.Takeover || f.Library != "fake" || f.Store != "tcp" || f.Unit != "TTL" || f.Count != 1 {
			t.Errorf("%+v", f)
		}
	}
	if is := figures[0]; is.What != afterKill || len(is.Values) != 1 || is.Values[0] <= 0 {
		t.Errorf("%+v", is)
	}
	if may := figures[1]; may.What != allowed || len(may.Values) != 2 || may.Values[0] != 0.7 || may.Values[1] != 1.2 || may.Note != "of the rules" {
		t.Errorf("%+v", may)
	}
}

// A leader ends when its input does, as it does when the program that started
// it has ended.
func TestLeadEnds(t *testing.T) {
	config := peers.Config{Address: serve(t, false, false)}
	here := fakeOverTCP
	here.Open = func(ctx context.Context, c peers.Config) (peers.Candidate, error) {
		opened, err := fakeOverTCP.Open(ctx, c)
		if err == nil {
			t.Cleanup(func() { opened.Close() }) // it does not do that itself
		}
		return opened, err
	}
	in, end := io.Pipe()
	out := make(chan string, 1)
	ended := make(chan error)
	go func() {
		ended <- lead(task{"fake", "tcp", config}, []peers.Library{here}, in, writer(func(b []byte) { out <- string(b) }))
	}()
	select {
	case said := <-out:
		if said != `"`+leads+"\"\n" {
			t.Errorf("it says %q", said)
		}
	case err := <-ended:
		t.Fatalf("it ended before it led, error %v", err)
	case <-within(t).Done():
		t.Fatal("it does not lead")
	}
	end.Close()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-within(t).Done():
		t.Fatal("it does not end")
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) {
	w(bytes.Clone(b))
	return len(b), nil
}
