package main

import (
	"context"
	"encoding/binary"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/elector-go/elector"
)

// What is exactly at a bound is good, and what is beyond it is not, for each
// figure.
func TestFiguresAreJudged(t *testing.T) {
	pushed := cost{first: 2, acquire: 2, renewal: 1, resign: 1}
	polled := cost{first: 3, acquire: 2, renewal: 1, resign: 1, waiter: 2, observer: 0.5}
	for _, c := range []struct {
		name string
		b    budget
		good cost
	}{{"pushed", budget{first: 2, acquire: 2}, pushed}, {"polled", budget{first: 3, acquire: 2, idle: 2}, polled}} {
		for _, l := range c.good.lines(c.b) {
			if l.verdict() != "" {
				t.Errorf("%s: %s: %v of %v is%s", c.name, l.what, l.count, l.most, l.verdict())
			}
			l.count = l.most + 0.1
			if !strings.Contains(l.verdict(), "OVER") {
				t.Errorf("%s: %s: %v of %v is %q", c.name, l.what, l.count, l.most, l.verdict())
			}
			if l.least == 0 && l.most == 0 {
				continue // everything is pushed: there is nothing to see too little of
			}
			l.count = l.least - 0.1
			if !strings.Contains(l.verdict(), "NOT COUNTED") {
				t.Errorf("%s: %s: %v of at least %v is %q", c.name, l.what, l.count, l.least, l.verdict())
			}
		}
	}
}

// A waiter that reads is seen where nothing is pushed, and must not read where
// everything is.
func TestEachFigureIsJudged(t *testing.T) {
	good := cost{first: 2, acquire: 2, renewal: 1, resign: 1, waiter: 1, observer: 1}
	for what, spoil := range map[string]func(*cost){
		"first":       func(c *cost) { c.first++ },
		"uncontended": func(c *cost) { c.acquire++ },
		"renewal":     func(c *cost) { c.renewal += 0.1 },
		"resign":      func(c *cost) { c.resign++ },
		"waiter":      func(c *cost) { c.waiter = 2.1 },
		"observer":    func(c *cost) { c.observer = 2.1 },
	} {
		c := good
		spoil(&c)
		over := slices.DeleteFunc(c.lines(budget{first: 2, acquire: 2, idle: 2}), func(l line) bool { return l.verdict() == "" })
		if len(over) != 1 || !strings.Contains(over[0].what, what) {
			t.Errorf("%s over its budget: %+v", what, over)
		}
	}
}

func TestUnknownStoreIsRefused(t *testing.T) {
	err := run(t.Context(), []string{"etcd", "consul"})
	if err == nil || !strings.Contains(err.Error(), `"consul"`) {
		t.Errorf("error %v; want one that names the store", err)
	}
}

// ZooKeeper's requests are counted however they are cut into writes.
func TestFramesAreCounted(t *testing.T) {
	frame := func(number int32, rest int) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(4+rest))
		b = binary.BigEndian.AppendUint32(b, uint32(number))
		return append(b, make([]byte, rest)...)
	}
	stream := slices.Concat(
		frame(0, 40), // opens the session
		frame(1, 20), frame(pingNumber, 4), frame(2, 5), frame(3, 3000), frame(-8, 30), frame(pingNumber, 4),
	)
	for _, size := range []int{1, 3, 7, 12, 13, 64, len(stream)} {
		c := &countedConn{Conn: sink{}, sent: new(atomic.Int64)}
		for piece := range slices.Chunk(stream, size) {
			if n, err := c.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if c.sent.Load() != 4 {
			t.Errorf("in pieces of %d: %d requests; want 4", size, c.sent.Load())
		}
	}
}

// A sink takes what is written.
type sink struct{ net.Conn }

func (sink) Write(b []byte) (int, error) { return len(b), nil }

func TestAudienceWaitsForTheLast(t *testing.T) {
	a := newAudience(2)
	ctx, cancel := context.WithCancel(t.Context())
	a.sees(0, elector.Leader{ID: "x", Token: 7})
	a.sees(1, elector.Leader{ID: "w", Token: 6})
	a.sees(1, elector.Leader{Token: 7}) // a vacancy, under the token of who left it
	knows := make(chan error, 1)
	go func() { knows <- a.know(ctx, 7) }()
	cancel()
	if err := <-knows; err == nil {
		t.Error("not everybody had seen the token")
	}
	a.sees(1, elector.Leader{ID: "x", Token: 7})
	if err := a.know(t.Context(), 7); err != nil {
		t.Error(err)
	}
}
