package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// natsCluster says how the members of a cluster are run, and opens the gates between
// them. Others know a member by one address, its gate's.
func natsCluster(c *Cluster, token string, n int) ([]recipe, error) {
	program, err := binaries.NATS()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	c.Path = "/" + natsBucket
	routes, monitors := make([]atomic.Int32, n), make([]atomic.Int32, n)
	ask := natsAsker{monitors: map[string]*atomic.Int32{}, cluster: c}
	c.ask = ask
	gates, names := make([]string, n), make([]string, n)
	for i := range n {
		g, err := c.network.newGate(anybody, i, &routes[i], func(c *crossing) error { return natsGreet(c, names) })
		if err != nil {
			return nil, err
		}
		gates[i], names[i] = g.address(), fmt.Sprintf("%s-%d", token, i)
		ask.monitors[names[i]] = &monitors[i]
	}
	var recipes []recipe
	for i := range n {
		settings := func(*server) string {
			return fmt.Sprintf(`
http: "127.0.0.1:%d"
cluster {
	name: %q
	listen: "127.0.0.1:%d"
	cluster_advertise: %q
	no_advertise: true
	compression: off
	pool_size: -1
	routes: [ %s ]
}`, monitors[i].Load(), token, routes[i].Load(), gates[i], natsRoutes(gates, i))
		}
		r := natsRecipe(program, func(*server) string { return names[i] }, settings)
		whole, begun := r.ready, false
		r.ready = func(ctx context.Context, s *server) (err error) {
			if !begun {
				err = whole(ctx, s)
			} else { // JetStream answers when the others are there too, see Ready
				err = natsAsk(ctx, s.address(), func(*nats.Conn) error { return nil })
			}
			begun = begun || err == nil
			return err
		}
		write := r.before
		r.before = func(s *server) error {
			for _, port := range []*atomic.Int32{&routes[i], &monitors[i]} {
				p, err := choosePort()
				if err != nil {
					return err
				}
				port.Store(int32(p))
			}
			return write(s)
		}
		recipes = append(recipes, r)
	}
	return recipes, nil
}

func natsRoutes(gates []string, own int) string {
	var routes []string
	for i, g := range gates {
		if i != own {
			routes = append(routes, strconv.Quote("nats://"+g))
		}
	}
	return strings.Join(routes, ", ")
}

// natsGreet finds out which member has connected. Its name is in its INFO, which it sends
// after its CONNECT, without waiting for an answer as long as nothing is compressed.
func natsGreet(c *crossing, names []string) error {
	var said []byte
	for {
		line, err := c.client.ReadBytes('\n')
		if err != nil {
			return err
		}
		said = append(said, line...)
		content, ok := bytes.CutPrefix(line, []byte("INFO "))
		if !ok {
			continue
		}
		var info struct {
			Name string `json:"server_name"`
		}
		if err := json.Unmarshal(content, &info); err != nil {
			return err
		}
		if i := slices.Index(names, info.Name); i >= 0 {
			c.from.Store(int32(i))
		}
		return c.send(said)
	}
}

type natsAsker struct {
	monitors map[string]*atomic.Int32
	cluster  *Cluster
}

// answers writes to the bucket, which it makes if it is missing: a write takes a majority of the bucket's stream.
func (natsAsker) answers(ctx context.Context, s *Store) error {
	return natsAsk(ctx, s.Address, func(nc *nats.Conn) error {
		js, err := jetstream.New(nc)
		if err != nil {
			return err
		}
		if err := natsMake(ctx, nc, 3); err != nil {
			return err
		}
		_, err = js.Publish(ctx, "$KV."+natsBucket+".ready", nil, jetstream.WithRetryAttempts(0))
		return err
	})
}

// leads asks about the Raft group of the bucket's stream.
func (a natsAsker) leads(ctx context.Context, s *Store) (bool, uint64, error) {
	name := ""
	for i, m := range a.cluster.Members {
		if m == s {
			for n := range a.monitors {
				if strings.HasSuffix(n, "-"+strconv.Itoa(i)) {
					name = n
				}
			}
		}
	}
	port := a.monitors[name]
	if port == nil {
		return false, 0, errors.New("it is no member")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(int(port.Load()))+"/raftz?acc=$G", nil)
	if err != nil {
		return false, 0, err
	}
	answer, err := plainClient.Do(r)
	if err != nil {
		return false, 0, err
	}
	defer answer.Body.Close()
	content, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, 0, err
	}
	var groups map[string]map[string]struct {
		State, Leader string
		Term          uint64
	}
	if err := json.Unmarshal(content, &groups); err != nil {
		return false, 0, fmt.Errorf("/raftz answers %.100s: %w", content, err)
	}
	for id, g := range groups["$G"] {
		if strings.HasPrefix(id, "S-") {
			if g.Leader == "" {
				return false, 0, errors.New("the bucket's stream has no leader")
			}
			return g.State == "LEADER", g.Term, nil
		}
	}
	return false, 0, errors.New("it has no bucket")
}

var plainClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
