package etcd

import (
	"context"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// placeKey is the key of an election's place in line. It comes right after the
// record's, before the keys of all other elections: no name has a byte as low as
// '+'.
func (b *Backend) placeKey(name string) string { return b.prefix + name + "+next" }

// SwapPlace implements [backends.Liner].
func (b *Backend) SwapPlace(ctx context.Context, name, prev, next string) error {
	return b.handle.SwapPlace(ctx, name, func(ctx context.Context) error {
		key := b.placeKey(name)
		same, do := clientv3.Compare(clientv3.Value(key), "=", prev), clientv3.OpDelete(key)
		if prev == "" {
			same = clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		}
		var lease clientv3.LeaseID
		if next != "" {
			var err error
			if lease, err = b.line.lease(ctx, b.client); err != nil {
				return err
			}
			do = clientv3.OpPut(key, next, clientv3.WithLease(lease))
		}
		answer, err := b.client.Txn(ctx).If(same).Then(do).Commit()
		if err != nil && is(err, rpctypes.ErrLeaseNotFound) {
			b.line.forget(lease)
		}
		if err == nil && !answer.Succeeded {
			err = backends.ErrConflict
		}
		return err
	})
}

// placesLast is how long a place in line lasts, at least half of it. A candidate
// whose place has expired takes it again; nothing keeps a lease alive, so that waiting
// costs no request.
const placesLast = time.Hour

// A session is the lease of the places in line that a handle has taken. It is for
// these hints alone.
type session struct {
	turn    chan struct{} // holds a value while a lease is granted
	mutex   sync.Mutex
	id      clientv3.LeaseID // 0 for none
	granted time.Time
	before  clientv3.LeaseID // that may still have places; those before it have expired
}

// lease returns a lease, and has one granted if there is none, or half of its time is
// over.
func (s *session) lease(ctx context.Context, client *clientv3.Client) (clientv3.LeaseID, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-s.turn }()
	if id := s.present(); id != 0 {
		return id, nil
	}
	start := time.Now()
	answer, err := client.Grant(ctx, int64(placesLast/time.Second))
	if err != nil {
		return 0, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.id, s.before, s.granted = answer.ID, s.id, start
	return s.id, nil
}

func (s *session) present() clientv3.LeaseID {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if time.Since(s.granted) >= placesLast/2 {
		return 0
	}
	return s.id
}

// forget gives up a lease that has expired.
func (s *session) forget(id clientv3.LeaseID) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.id == id {
		s.id = 0
	}
}

// end revokes the leases, and with them the places. It tries once: they expire.
func (s *session) end(client *clientv3.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.mutex.Lock()
	ids := []clientv3.LeaseID{s.id, s.before}
	s.id, s.before = 0, 0
	s.mutex.Unlock()
	for _, id := range ids {
		if id != 0 {
			client.Revoke(ctx, id)
		}
	}
}
