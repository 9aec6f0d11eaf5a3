package partition_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/fence/fencegrpc"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/fault"
	"github.com/elector-go/elector/internal/fencing"
	"github.com/elector-go/elector/partition"
)

const partitions = 2

// A door makes one write under a lease. It calls sending between the check of the lease
// and the write. It returns ErrStale if the resource refuses the write, and the lease's
// error if nothing was sent.
type door func(ctx context.Context, l *partition.Lease, sending func()) error

// doors are those of a fresh resource.
var doors = map[string]func(*memory.Store) door{
	"a guard of the store": func(store *memory.Store) door { // compares as etcd's does
		return func(_ context.Context, l *partition.Lease, sending func()) error {
			a, _, err := fencing.Acquisition[*memory.Backend](l, "memory")
			if err != nil {
				return err
			}
			sending()
			if !strings.HasPrefix(string(store.Get(a.Election)), backends.RecordPrefix(a.Election, a.Record)) {
				return backends.ErrStale
			}
			return nil
		}
	},
	"a token": func(*memory.Store) door {
		fence := &elector.Fence{}
		return func(ctx context.Context, l *partition.Lease, sending func()) error {
			if err := l.Check(); err != nil {
				return err
			}
			sending()
			return fence.Admit(ctx, fmt.Sprint(l.Partition()), l.Token())
		}
	},
	"fencehttp, a handler for each partition": func(*memory.Store) door {
		var all [partitions]http.Handler
		for n := range all {
			all[n] = &fencehttp.Handler{Next: http.NotFoundHandler(), Election: fmt.Sprintf("orders.p.%d", n)}
		}
		return overHTTP(func(w http.ResponseWriter, r *http.Request) {
			n := 0
			fmt.Sscanf(r.URL.Path, "/%d", &n)
			all[n].ServeHTTP(w, r)
		})
	},
	"fencehttp, a resource for each partition": func(*memory.Store) door {
		h := &fencehttp.Handler{Next: http.NotFoundHandler(), Resource: func(r *http.Request) string { return r.URL.Path }}
		return overHTTP(h.ServeHTTP)
	},
	"fencegrpc": func(*memory.Store) door {
		var all servers
		for n := range all {
			all[n] = &fencegrpc.Server{Election: fmt.Sprintf("orders.p.%d", n)}
		}
		return func(ctx context.Context, l *partition.Lease, sending func()) error {
			conn := &fencegrpc.Conn{Lease: l, Base: calls{all, sending}}
			err := conn.Invoke(ctx, "/orders/Write", l.Partition(), nil)
			if status.Code(err) == codes.FailedPrecondition {
				return elector.ErrStale
			}
			return err
		}
	},
}

func overHTTP(serve http.HandlerFunc) door {
	return func(ctx context.Context, l *partition.Lease, sending func()) error {
		client := http.Client{Transport: &fencehttp.Transport{Lease: l, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
			sending()
			w := httptest.NewRecorder()
			serve(w, r)
			return w.Result(), nil
		})}}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://orders/%d", l.Partition()), nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		_, refused := fencehttp.Refused(answer)
		switch {
		case refused:
			return elector.ErrStale
		case answer.StatusCode != http.StatusNotFound: // Next's
			return errors.New(answer.Status)
		}
		return nil
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// servers has one for each partition.
type servers [partitions]*fencegrpc.Server

// pick serves a call, whose request is the number of a partition, by that one's server.
func (s servers) pick(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	return s[request.(int)].Unary()(ctx, request, info, handler)
}

// calls is a connection to the servers.
type calls struct {
	servers
	sending func()
}

func (c calls) Invoke(ctx context.Context, method string, request, _ any, _ ...grpc.CallOption) error {
	c.sending()
	sent, _ := metadata.FromOutgoingContext(ctx)
	_, err := c.pick(metadata.NewIncomingContext(ctx, sent), request, &grpc.UnaryServerInfo{FullMethod: method},
		func(context.Context, any) (any, error) { return nil, nil })
	return err
}

func (c calls) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return stream{}, nil
}

// A stream is one that takes all messages.
type stream struct{ grpc.ClientStream }

func (stream) SendMsg(any) error { return nil }

// named is a backend with faults whose guards find the store.
type named struct {
	backends.PresenceWatcher
	store *memory.Store
}

func (n named) Unwrap() backends.Backend { return n.store.Handle() }

// A member is a process of the group that has all partitions.
type member struct {
	*testing.T
	faults *fault.Backend
	leases [partitions]*partition.Lease
	stop   context.CancelFunc
	done   chan error
	group  *partition.Group
}

// owns starts a process, and returns when it owns all partitions.
func owns(t *testing.T, store *memory.Store, id string) *member {
	t.Helper()
	faults, backend := fault.Wrap(store.Handle())
	g, err := partition.New(named{backend.(backends.PresenceWatcher), store}, "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{ID: id, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{T: t, faults: faults, stop: stop, done: make(chan error, 1), group: g}
	leases := make(chan *partition.Lease, 100)
	go func() {
		m.done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			leases <- l
			<-ctx.Done()
			return nil
		})
	}()
	for owned := 0; owned < partitions; {
		select {
		case l := <-leases:
			if m.leases[l.Partition()] == nil {
				owned++
			}
			m.leases[l.Partition()] = l
		case <-time.After(10 * time.Minute):
			t.Fatalf("%s owns %d of %d partitions", id, owned, partitions)
		}
	}
	return m
}

// leaves makes the process leave the group.
func (m *member) leaves() {
	m.Helper()
	m.stop()
	if err := <-m.done; err != nil {
		m.Error(err)
	}
}

// cutOff makes the process lose its leases, because it does not reach the store.
func (m *member) cutOff() {
	m.faults.Always(fault.RequestLost)
	m.faults.CutWatches(backends.ErrUnavailable)
	for _, l := range m.leases {
		<-l.Context().Done()
	}
}

func (m *member) close() {
	m.faults.Always(nil)
	m.stop()
	if err := m.group.Close(); err != nil {
		m.Error(err)
	}
}

// Guards and fences take a partition's lease. They refuse a write once the partition has
// another owner, however late it arrives, and send none under a lease that is over.
func TestGuards(t *testing.T) {
	for name, fresh := range doors {
		for how, c := range map[string]struct {
			end  func(*member)
			want error
		}{
			"given up": {(*member).leaves, elector.ErrResigned},
			"cut off":  {(*member).cutOff, elector.ErrLost},
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store := memory.NewStore()
					write := fresh(store)
					writes := func(when string, l *partition.Lease, want error) {
						t.Helper()
						sent := false
						err := write(t.Context(), l, func() { sent = true })
						if !errors.Is(err, want) || sent != (want == nil) {
							t.Errorf("%s, %v: the error is %v, sent %v; want %v", when, l, err, sent, want)
						}
					}
					a := owns(t, store, "a")
					defer a.close()
					for _, l := range a.leases {
						writes("under a valid lease", l, nil)
					}
					late := make(chan error)
					sending, send := make(chan bool), make(chan bool)
					for _, l := range a.leases {
						go func() { late <- write(t.Context(), l, func() { sending <- true; <-send }) }()
						select {
						case <-sending:
						case err := <-late:
							t.Fatalf("a write under a valid lease is not sent: %v", err)
						}
					}

					c.end(a)
					b := owns(t, store, "b")
					defer b.close()
					for n, l := range b.leases {
						if l.Token() <= a.leases[n].Token() {
							t.Errorf("%v follows %v", l, a.leases[n])
						}
						writes("under the next owner's lease", l, nil)
						writes("after the end of the lease", a.leases[n], c.want)
					}
					close(send)
					for range a.leases {
						if err := <-late; !errors.Is(err, elector.ErrStale) {
							t.Errorf("a write that arrives after the next owner's: %v", err)
						}
					}
					for _, l := range b.leases {
						writes("after the late write", l, nil)
					}
				})
			})
		}
	}
}

// A stream sends its messages while the lease is valid.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := owns(t, memory.NewStore(), "a")
		defer a.close()
		conn := &fencegrpc.Conn{Lease: a.leases[0], Base: calls{}}
		s, err := conn.NewStream(t.Context(), nil, "/orders/Write")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SendMsg(nil); err != nil {
			t.Error(err)
		}
		a.leaves()
		if err := s.SendMsg(nil); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("a message after the end of the lease: %v", err)
		}
		if _, err := conn.NewStream(t.Context(), nil, "/orders/Write"); !errors.Is(err, elector.ErrResigned) {
			t.Errorf("a stream after the end of the lease: %v", err)
		}
	})
}

// An acquisition is that of the partition's own record, and bounds what it guards by what
// is left of the lease.
func TestAcquisition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore()
		m := owns(t, store, "a")
		defer m.close()
		synctest.Wait() // the records are confirmed
		for n, l := range m.leases {
			a, err := backends.Lease(l).Acquisition()
			if err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("orders.p.%d", n)
			r, err := backends.Decode(name, store.Get(name))
			r.Version = a.Record.Version
			if err != nil || a.Election != name || a.Record != r || elector.Token(r.Token) != l.Token() {
				t.Errorf("partition %d: %+v, %v; want election %s and the record %+v", n, a, err, name, r)
			}
			if a.Remaining <= 0 || a.Remaining > 15*time.Second {
				t.Errorf("partition %d: %v remain", n, a.Remaining)
			}
		}
	})
}
