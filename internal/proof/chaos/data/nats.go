package data

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/nats"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A natsData has a key for each write. No two have one sequence.
type natsData struct {
	bucket  string
	login   []natsgo.Option
	servers []*natsServer
}

// A natsServer is one of the servers, with a handle of its own.
type natsServer struct {
	host, url string
	handle    atomic.Pointer[nats.Backend]
}

func openNATS(u *url.URL) Data {
	d := &natsData{bucket: strings.Trim(u.Path, "/")}
	if password, ok := u.User.Password(); ok {
		d.login = []natsgo.Option{natsgo.UserInfo(u.User.Username(), password)}
	}
	for _, host := range strings.Split(u.Host, ",") {
		one := url.URL{Scheme: u.Scheme, User: u.User, Host: host, Path: u.Path}
		d.servers = append(d.servers, &natsServer{host: host, url: one.String()})
	}
	return d
}

// open returns the handle, which the first call opens.
func (s *natsServer) open(ctx context.Context) (*nats.Backend, error) {
	if b := s.handle.Load(); b != nil {
		return b, nil
	}
	b, err := backends.Open(ctx, s.url)
	if err != nil {
		return nil, err
	}
	if !s.handle.CompareAndSwap(nil, b.(*nats.Backend)) {
		err = b.Close() // another call was faster
	}
	return s.handle.Load(), err
}

// A natsMoved lease writes through another server than its election.
type natsMoved struct {
	backends.Lease
	to *nats.Backend
}

// Acquisition implements [backends.Lease].
func (m natsMoved) Acquisition() (backends.Acquisition, error) {
	a, err := m.Lease.Acquisition()
	a.Backend = m.to
	return a, err
}

func (d *natsData) Write(ctx context.Context, lease backends.Lease, election string, w Write) error {
	server, err := d.servers[int(w.Number)%len(d.servers)].open(ctx)
	if err != nil {
		return err
	}
	_, err = nats.Put(ctx, natsMoved{lease, server}, fmt.Sprintf("data.%s.%s-%d", election, w.Candidate, w.Number), []byte(w.String()))
	return err
}

// Read goes through the keys in the order of their sequences.
func (d *natsData) Read(ctx context.Context, election string) (all []Write, err error) {
	for _, s := range d.servers {
		if all, err = d.read(ctx, s.host, election); err == nil {
			break
		}
	}
	return all, err
}

func (d *natsData) read(ctx context.Context, host, election string) (all []Write, err error) {
	nc, err := stores.NATSConnect(ctx, host, d.login...)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	for from := uint64(1); ; {
		m, err := stores.NATSNext(ctx, nc, "KV_"+d.bucket, "$KV."+d.bucket+".data."+election+".*", from)
		if err != nil || m.Seq == 0 {
			return all, err
		}
		w, err := parse(string(m.Data))
		if err != nil {
			return nil, err
		}
		all, from = append(all, w), m.Seq+1
	}
}

func (d *natsData) Close() (err error) {
	for _, s := range d.servers {
		if b := s.handle.Load(); b != nil {
			err = errors.Join(err, b.Close())
		}
	}
	return err
}
