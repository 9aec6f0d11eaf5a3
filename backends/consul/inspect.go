package consul

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It looks at the number of servers, at
// the agent's settings, for which the token needs the permission agent:read, at the
// clock, and at whether the token crosses the network in the clear.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		var servers []string
		header, err := b.fetch(ctx, "/v1/status/peers", &servers)
		if err != nil {
			return i, err
		}
		i.Clock, _ = http.ParseTime(header.Get("Date"))
		i.Findings = append(b.inspectToken(), inspectServers(len(servers)))
		var agent settings
		_, err = b.fetch(ctx, "/v1/agent/self", &agent)
		if s, ok := as[*statusError](err); ok && s.status == http.StatusForbidden {
			i.Findings = append(i.Findings, backends.Finding{What: "agent", Seen: "its settings are not shown to this token", Fix: `to see them, add to the policy of the token: agent_prefix "" { policy = "read" }`})
			return i, nil
		}
		if err != nil {
			return i, err
		}
		i.Findings = append(i.Findings, agent.inspect(ttl)...)
		return i, nil
	})
}

// inspectToken looks at whether the token crosses the network in the clear.
func (b *Backend) inspectToken() []backends.Finding {
	if token, err := b.token(); token == "" || err != nil {
		return nil
	}
	f := backends.Finding{What: "TLS", Seen: "a token, over TLS or on this machine"}
	for _, at := range b.addresses {
		if name := at.Hostname(); at.Scheme == "http" && name != "localhost" && !net.ParseIP(name).IsLoopback() {
			f.Seen, f.Fix = "a token, without TLS", "use consuls://: the token can be read on the network"
		}
	}
	return []backends.Finding{f}
}

// fetch reads an answer of JSON.
func (b *Backend) fetch(ctx context.Context, path string, into any) (http.Header, error) {
	const most = 4 << 20
	a, err := b.send(ctx, http.MethodGet, path, url.Values{}, nil, most)
	if err != nil {
		return nil, err
	}
	if a.status != http.StatusOK || json.Unmarshal(a.content, into) != nil {
		return nil, errNotConsul
	}
	return a.header, nil
}

func inspectServers(n int) backends.Finding {
	f := backends.Finding{What: "servers", Seen: fmt.Sprintf("%d, of which %d can fail", n, (n-1)/2)}
	switch {
	case n == 0:
		f.Seen, f.Fix, f.Err = "none", "bring a majority of the servers up", backends.ErrUnavailable
	case n < 3:
		f.Fix = "run three servers, or no process leads while one is down"
	}
	return f
}

// settings are what an agent shows of itself.
type settings struct {
	Config      struct{ Version string }
	DebugConfig struct {
		ServerMode                 bool
		ConsulRaftHeartbeatTimeout duration
		HTTPMaxConnsPerClient      int
	}
}

// A duration is one as Consul writes it.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = duration(v)
	return err
}

func (s settings) inspect(ttl time.Duration) []backends.Finding {
	findings := []backends.Finding{{What: "agent", Seen: "version " + s.Config.Version}}
	if limit := s.DebugConfig.HTTPMaxConnsPerClient; limit > 0 {
		f := backends.Finding{What: "connections", Seen: fmt.Sprintf("%d from one address", limit)}
		if limit < maxWatches+maxCalls {
			f.Fix = fmt.Sprintf("a process with many elections uses %d: raise limits.http_max_conns_per_client", maxWatches+maxCalls)
		}
		findings = append(findings, f)
	}
	// A follower waits for up to twice the heartbeat's time-out, then for the votes;
	// and the last renewal may have been some time before.
	if heartbeat := time.Duration(s.DebugConfig.ConsulRaftHeartbeatTimeout); s.DebugConfig.ServerMode && heartbeat > 0 {
		f := backends.Finding{What: "failover", Seen: fmt.Sprintf("the servers notice after %v to %v that their leader is gone", heartbeat, 2*heartbeat)}
		if ttl < 7*heartbeat {
			f.Fix = fmt.Sprintf("leases of %v may end meanwhile: set performance { raft_multiplier = 1 } on the servers, or a TTL of %v", ttl, 7*heartbeat)
		}
		findings = append(findings, f)
	}
	return findings
}
