package stores

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// etcdCluster says how the members of a cluster are run, and opens the gates
// between them. Others know a member by one address, its gate's.
func etcdCluster(c *Cluster, token string, n int) ([]recipe, error) {
	c.ask = etcdAsker{}
	program, err := binaries.Etcd()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	peers := make([]atomic.Int32, n) // the ports where members listen for others
	urls, names := make([]string, n), make([]string, n)
	var cluster []string
	for i := range n {
		g, err := c.network.newGate(anybody, i, &peers[i], func(c *crossing) error { return etcdGreet(c, urls) })
		if err != nil {
			return nil, err
		}
		urls[i], names[i] = "http://"+g.address(), fmt.Sprintf("%s-%d", token, i)
		cluster = append(cluster, names[i]+"="+urls[i])
	}
	var recipes []recipe
	for i := range n {
		recipes = append(recipes, recipe{
			name:    "etcd " + binaries.EtcdVersion,
			program: program,
			before: func(*server) error {
				port, err := choosePort()
				peers[i].Store(int32(port))
				return err
			},
			arguments: func(s *server) []string {
				url := "http://" + s.address()
				return append(etcdBasics(quick, names[i], filepath.Join(s.dir, "data"), url, url),
					"--listen-peer-urls=http://"+loopback(int(peers[i].Load())),
					"--initial-advertise-peer-urls="+urls[i],
					"--initial-cluster="+strings.Join(cluster, ","),
					"--initial-cluster-token="+token,
					// Ten heartbeats in a row are not late by mistake.
					"--heartbeat-interval=100",
					"--election-timeout=1000")
			},
			ready: func(ctx context.Context, s *server) error { return etcdReady(ctx, s.address(), names[i], Login{}) },
			quit:  syscall.SIGKILL,
		})
	}
	return recipes, nil
}

// etcdGreet finds out which member has connected. Each tells its peer URL, its
// gate's, in the requests of the raft protocol, and a connection serves one
// member alone; but others can come before, such as that for the version.
func etcdGreet(c *crossing, urls []string) error {
	for {
		r, err := http.ReadRequest(c.client)
		if err != nil {
			return err
		}
		from := r.Header.Get("X-PeerURLs")
		for i, url := range urls {
			if from == url {
				c.from.Store(int32(i))
			}
		}
		if err := c.reach(); err != nil {
			return err
		}
		if err := r.Write(c.server); err != nil || from != "" {
			return err
		}
	}
}

type etcdAsker struct{}

// answers reads a key that no test writes; reads are linearizable.
func (etcdAsker) answers(ctx context.Context, s *Store) error {
	client, err := etcdClient(ctx, s.Address, s.Admin)
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = client.Get(ctx, "elector-ready")
	return err
}

func (etcdAsker) leads(ctx context.Context, s *Store) (bool, uint64, error) {
	client, err := etcdClient(ctx, s.Address, s.Admin)
	if err != nil {
		return false, 0, err
	}
	defer client.Close()
	status, err := client.Status(ctx, s.Address)
	if err != nil {
		return false, 0, err
	}
	if status.Leader == 0 {
		return false, 0, errors.New("it knows of no leader")
	}
	return status.Leader == status.Header.MemberId, status.RaftTerm, nil
}
