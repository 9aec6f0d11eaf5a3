package stores

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// etcdProxy starts etcd's own proxy before a server, and returns its address.
func etcdProxy(t *testing.T, behind *Store) string {
	t.Helper()
	program, err := binaries.Etcd()
	must(t, err)
	s, err := newServer(t.Context(), recipe{
		name:    "etcd grpc-proxy " + binaries.EtcdVersion,
		program: program,
		arguments: func(s *server) []string {
			return []string{"grpc-proxy", "start", "--endpoints=" + behind.Address, "--listen-addr=" + s.address(), "--advertise-client-url=" + s.address(), "--data-dir=" + s.dir}
		},
		ready: func(ctx context.Context, s *server) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address())
			if err != nil {
				return err
			}
			conn.Close()
			client, err := etcdClient(ctx, s.address(), Login{})
			if err != nil {
				return err
			}
			defer client.Close()
			list, err := client.MemberList(ctx)
			if err == nil && (len(list.Members) != 1 || !slices.Equal(list.Members[0].ClientURLs, []string{s.address()})) {
				err = errors.New("another server answers on its port")
			}
			return err
		},
		quit: syscall.SIGKILL,
	})
	must(t, err)
	t.Cleanup(func() { must(t, s.stop()) })
	return s.address()
}

// The elections of those who come through etcd's own proxy and of those who do not are
// the same, and doctor shows the proxy.
func TestEtcdProxy(t *testing.T) {
	s := begin(t, Etcd)
	url := "etcd://" + etcdProxy(t, s) + "/elector"
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	campaign := func(url string) *elector.Lease {
		e, err := elector.Open(ctx, url, "proxied", &elector.Options{TTL: 4 * time.Second})
		must(t, err)
		t.Cleanup(func() { e.Close() })
		lease, err := e.Campaign(ctx)
		must(t, err)
		return lease
	}
	first := campaign(s.URL)
	must(t, first.Release(ctx))
	second := campaign(url)
	if second.Token() <= first.Token() {
		t.Errorf("token %d after %d", second.Token(), first.Token())
	}
	must(t, second.Release(ctx))
	b := opener(url)(t)
	defer b.Close()
	i, err := b.(backends.Inspector).Inspect(ctx, 4*time.Second)
	must(t, err)
	var found bool
	for _, f := range i.Findings {
		found = found || f.What == "proxy" && strings.Contains(f.Fix, "name the members")
	}
	if !found {
		t.Errorf("the findings do not name the proxy: %+v", i.Findings)
	}
}
