package cost

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/stores"
)

const watchdog = 30 * time.Second

// newStore is a server that returns each byte, and calls itself ZooKeeper.
func newStore(t *testing.T) *stores.Store {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				// The struct hides what would splice, with pipes that stay open for a while.
				io.Copy(struct{ io.Writer }{conn}, conn)
			})
		}
	})
	t.Cleanup(func() { l.Close(); serving.Wait() })
	address := l.Addr().String()
	return &stores.Store{Kind: stores.ZooKeeper, URL: "zookeeper://" + address, Address: address}
}

// A library whose requests can be foretold: two to open, one as soon as a
// candidate is elected, one to resign, one to close.
type library struct {
	seats sync.Map // of elections: a channel that has something in it while no candidate leads

	late   atomic.Bool  // it resigns without making room for anybody
	two    atomic.Bool  // its waiters are elected at once
	loses  atomic.Bool  // its leaders are none
	fails  atomic.Int64 // so many of its candidates cannot be opened
	blind  atomic.Bool  // its observers give up once they have seen the leader
	chatty atomic.Bool  // its waiters and observers ask without a pause
	closed atomic.Int64 // candidates
	opened atomic.Int64
}

func (l *library) peer(observes bool) peers.Library {
	return peers.Library{
		Name: "fake", Store: stores.ZooKeeper,
		Open: func(ctx context.Context, c peers.Config) (peers.Candidate, error) {
			if l.fails.Add(-1) >= 0 {
				return nil, errors.New("no room")
			}
			if c.URL != "zookeeper://"+c.Address {
				return nil, errors.New("URL and address differ")
			}
			f := &fake{library: l}
			var err error
			if f.conn, err = net.Dial("tcp", c.Address); err != nil {
				return nil, err
			}
			l.opened.Add(1)
			f.conn.SetDeadline(time.Now().Add(watchdog))
			seat := make(chan struct{}, 1)
			seat <- struct{}{}
			there, _ := l.seats.LoadOrStore(c.Name, seat)
			f.seat = there.(chan struct{})
			for range 3 { // the first is the session, which is no request
				if err := f.request(); err != nil {
					return nil, err
				}
			}
			if observes {
				return &observing{fake: f}, nil
			}
			return f, nil
		},
	}
}

type fake struct {
	library *library
	conn    net.Conn
	seat    chan struct{}
	leads   atomic.Bool
	mutex   sync.Mutex // held while a request is under way
}

// request sends 12 bytes and gets as many.
func (f *fake) request() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	b := binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, 1)
	b = append(b, make([]byte, 4)...)
	if _, err := f.conn.Write(b); err != nil {
		return err
	}
	_, err := io.ReadFull(f.conn, b)
	return err
}

func (f *fake) Campaign(ctx context.Context) error {
	for f.library.chatty.Load() && len(f.seat) == 0 && ctx.Err() == nil {
		if err := f.request(); err != nil {
			return err
		}
	}
	seat := f.seat
	if f.library.two.Load() {
		seat = make(chan struct{}, 1)
		seat <- struct{}{}
	}
	select {
	case <-seat:
		f.leads.Store(true)
		return f.request()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fake) Leads() bool     { return f.leads.Load() && !f.library.loses.Load() }
func (f *fake) Renewal() []byte { return nil }

func (f *fake) Resign(context.Context) error {
	if err := f.request(); err != nil {
		return err
	}
	if f.leads.Swap(false) && !f.library.late.Load() {
		f.seat <- struct{}{}
	}
	return nil
}

func (f *fake) Close() error {
	err := f.request()
	f.library.closed.Add(1)
	return errors.Join(err, f.conn.Close())
}

// observing is one that sends a request when it begins to observe.
type observing struct{ *fake }

func (o *observing) Observe(ctx context.Context, changed func()) error {
	if err := o.request(); err != nil {
		return err
	}
	changed()
	for o.library.chatty.Load() && ctx.Err() == nil {
		if err := o.request(); err != nil {
			return err
		}
	}
	if o.library.blind.Load() {
		return errors.New("blind")
	}
	<-ctx.Done()
	return ctx.Err()
}
