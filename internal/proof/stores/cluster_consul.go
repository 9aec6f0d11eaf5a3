package stores

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// consulCluster says how the members of a cluster are run, and opens the gates
// between them. What a member advertises is one address, with the ports on which
// it listens. So each has two addresses of this machine: at the one that it
// advertises its gate listens for the Raft log and for requests, and the member
// itself for gossip, which is never cut; at the other one it listens behind the
// gate, and from there it connects.
func consulCluster(c *Cluster, token string, n int) ([]recipe, error) {
	c.ask = consulAsker{}
	program, err := binaries.Consul()
	if err != nil {
		return nil, fmt.Errorf("%w; run go run ./cmd/fetch consul in internal/proof", err)
	}
	names, rpcs, serfs := make([]string, n), make([]int, n), make([]int, n)
	var join []string
	for i := range n {
		names[i] = fmt.Sprintf("%s-%d", strings.ToLower(token), i)
		// A member that is restarted is found at the same ports.
		for _, port := range []*int{&rpcs[i], &serfs[i]} {
			if *port, err = choosePort(); err != nil {
				return nil, err
			}
		}
		own := net.JoinHostPort(consulBound(i), strconv.Itoa(rpcs[i]))
		if _, err := c.network.newGateAt(net.JoinHostPort(consulShown(i), strconv.Itoa(rpcs[i])), consulFrom, i, func() string { return own }, nil); err != nil {
			return nil, err
		}
		join = append(join, "-retry-join="+net.JoinHostPort(consulShown(i), strconv.Itoa(serfs[i])))
	}
	var recipes []recipe
	for i := range n {
		recipes = append(recipes, recipe{
			name:    "consul " + binaries.ConsulVersion,
			program: program,
			arguments: func(s *server) []string {
				return append(append(consulArguments(names[i], filepath.Join(s.dir, "data"), "127.0.0.1", strconv.Itoa(s.port), rpcs[i], serfs[i]),
					"-bind="+consulBound(i), "-advertise="+consulShown(i), "-serf-lan-bind="+consulShown(i),
					"-retry-interval=1s", "-bootstrap-expect="+strconv.Itoa(n)), join...)
			},
			ready: func(ctx context.Context, s *server) error { return consulReady(ctx, s.address(), names[i], "") },
			quit:  syscall.SIGKILL,
		})
	}
	return recipes, nil
}

func consulShown(i int) string { return fmt.Sprintf("127.0.1.%d", i+1) }

func consulBound(i int) string { return fmt.Sprintf("127.0.2.%d", i+1) }

// consulFrom returns which member connects from an address.
func consulFrom(at net.Addr) int {
	var i int
	if _, err := fmt.Sscanf(at.String(), "127.0.2.%d:", &i); err != nil {
		return anybody
	}
	return i - 1
}

type consulAsker struct{}

// answers does not wait for as long as a server waits for a leader, or it would
// learn late that there is one.
func (consulAsker) answers(ctx context.Context, s *Store) error {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	return consulAnswers(ctx, s.Address, "")
}

func (consulAsker) leads(ctx context.Context, s *Store) (bool, uint64, error) {
	var self consulSelf
	if _, err := consulCall(ctx, s.Address, "", http.MethodGet, "/v1/agent/self", nil, &self); err != nil {
		return false, 0, err
	}
	if self.Stats.Consul.Leader == "" {
		return false, 0, errors.New("it knows of no leader")
	}
	term, err := strconv.ParseUint(self.Stats.Raft.Term, 10, 64)
	return self.Stats.Raft.State == "Leader", term, err
}
