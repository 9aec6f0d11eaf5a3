package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/elector-go/elector/backends"
)

// A Durability is what a handle demands of the server.
type Durability string

const (
	// Checked demands one server that syncs each write to its disk before it
	// acknowledges it, and shows that.
	Checked Durability = ""

	// Stated is the operator's word that the server syncs each write, where it does
	// not show its configuration. Whatever it shows is checked.
	Stated Durability = "stated"

	// Lossy accepts that the server may lose acknowledged writes. Two processes may
	// then lead at once: see [backends.Description].
	Lossy Durability = "lossy"
)

func (d Durability) valid() bool { return d == Checked || d == Stated || d == Lossy }

// lossy is for [backends.Description].
func (d Durability) lossy() string {
	if d == Lossy {
		return "its URL has durability=lossy: a failover, a crash or an eviction may lose acknowledged writes, and then two processes can lead at once"
	}
	return ""
}

const (
	orLossy = "; or write durability=lossy to accept that two processes may lead at once"
	setAOF  = "set appendonly yes, appendfsync always and no-appendfsync-on-rewrite no"
)

// An info is what INFO shows.
type info map[string]string

func parseInfo(text string) info {
	is := info{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			is[name] = value
		}
	}
	return is
}

// checkReplication returns why the server must not be used as it replicates now. A
// replica that has lost its link, and may be promoted, is not connected, so the
// backlog counts, which the server keeps for it.
func (d Durability) checkReplication(is info) error {
	switch {
	case is["role"] != "master":
		return fmt.Errorf("%w: its role is %q; %s", backends.ErrReadOnly, is["role"], replicaAdvice)
	case d == Lossy:
		return nil
	}
	f := replication(is)
	if f.Err != nil {
		return fmt.Errorf("%w: %s: %s%s", f.Err, f.Seen, f.Fix, orLossy)
	}
	return nil
}

const replicaAdvice = "it is a replica, or a failover is under way; name the primary"

// replication looks at what a failover loses.
func replication(is info) backends.Finding {
	f := backends.Finding{What: "replication", Seen: is["connected_slaves"] + " replicas"}
	bad := func(seen, fix string) backends.Finding {
		return backends.Finding{What: f.What, Seen: seen, Fix: fix, Err: backends.ErrMisconfigured}
	}
	switch {
	case is["role"] != "master":
		f.Seen, f.Fix, f.Err = "its role is "+strconv.Quote(is["role"]), replicaAdvice, backends.ErrReadOnly
	case is["connected_slaves"] != "0":
		return bad("it has "+cmp.Or(is["connected_slaves"], "an unknown number of")+" replicas", "Redis acknowledges a write before a replica has it, so a failover loses acknowledged writes; use one server without replicas")
	case is["second_repl_offset"] != "-1":
		return bad("it was a replica and was promoted", "it may lack writes that the primary before it acknowledged; stop all candidates for a TTL, and restart it")
	case is["repl_backlog_active"] != "0":
		return bad("a replica was connected", "if it is promoted, acknowledged writes are lost; take it down for good, and wait for repl-backlog-ttl, 3600 s by default, or restart the server")
	}
	return f
}

// mode looks at how the server runs.
func mode(is info) backends.Finding {
	f := backends.Finding{What: "server", Seen: cmp.Or(is["server_name"], "redis") + " " + cmp.Or(is["valkey_version"], is["redis_version"]) + ", " + is["redis_mode"]}
	if is["redis_mode"] != "standalone" || is["cluster_enabled"] == "1" {
		f.Fix, f.Err = "a Cluster loses acknowledged writes at a failover, and a Sentinel keeps no data; use one server", backends.ErrMisconfigured
	}
	return f
}

// disk looks at what a crash loses. config is nil if the server does not show it.
func disk(is info, config map[string]string) backends.Finding {
	f := backends.Finding{What: "disk", Seen: "appendonly no"}
	bad := func(fix string) backends.Finding { f.Fix, f.Err = fix, backends.ErrMisconfigured; return f }
	if is["aof_enabled"] != "1" {
		return bad(setAOF + ": otherwise a restart loses acknowledged writes")
	}
	if config == nil {
		f.Seen = "appendonly yes; the server does not show appendfsync"
		return bad("grant the user +config|get, or write durability=stated if the server has appendfsync always and no-appendfsync-on-rewrite no")
	}
	f.Seen = fmt.Sprintf("appendonly yes, appendfsync %s, no-appendfsync-on-rewrite %s", config["appendfsync"], config["no-appendfsync-on-rewrite"])
	if config["appendfsync"] != "always" || config["no-appendfsync-on-rewrite"] != "no" {
		return bad(setAOF + ": otherwise a crash loses acknowledged writes")
	}
	return f
}

// eviction looks at whether the server deletes records when its memory is full.
func eviction(is info) backends.Finding {
	f := backends.Finding{What: "eviction", Seen: "maxmemory-policy " + cmp.Or(is["maxmemory_policy"], "unknown")}
	if p := is["maxmemory_policy"]; p != "noeviction" && !strings.HasPrefix(p, "volatile-") {
		f.Fix, f.Err = "set maxmemory-policy noeviction: otherwise the server deletes records when its memory is full", backends.ErrMisconfigured
	}
	return f
}

// look returns what there is to say of the server.
func (b *Backend) look(ctx context.Context, c goredis.Cmdable) ([]backends.Finding, error) {
	text, err := c.Info(ctx).Result()
	if err != nil {
		return nil, err
	}
	shown := parseInfo(text)
	if shown["loading"] == "1" { // meanwhile it shows aof_enabled:0
		return nil, fmt.Errorf("%w: it is loading its data", backends.ErrUnavailable)
	}
	config, err := c.ConfigGet(ctx, "*appendfsync*").Result()
	if is(err, "NOPERM", "ERR unknown") {
		config, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	synced := disk(shown, config)
	if config == nil && synced.Seen != "appendonly no" && b.options.Durability == Stated {
		synced.Seen, synced.Fix, synced.Err = "appendonly yes; durability=stated", "", nil
	}
	return []backends.Finding{mode(shown), replication(shown), synced, eviction(shown)}, nil
}

// settle looks at the server of a new connection, and refuses it if it cannot serve. A
// server may have been restarted with other settings, or be another one.
func (b *Backend) settle(ctx context.Context, c *goredis.Conn) error {
	if b.options.ReadOnly {
		return nil
	}
	err := b.refuse(ctx, c)
	if err != nil {
		b.servers.next()
		err = fmt.Errorf("%w", err) // the client library unwraps it once
	}
	return err
}

func (b *Backend) refuse(ctx context.Context, c *goredis.Conn) error {
	findings, err := b.look(ctx, c)
	if err != nil {
		return err
	}
	for _, f := range findings {
		lossy := b.options.Durability == Lossy && f.What != "server" && !errors.Is(f.Err, backends.ErrReadOnly)
		if f.Err != nil && !lossy {
			advice := orLossy
			if f.What == "server" || errors.Is(f.Err, backends.ErrReadOnly) {
				advice = ""
			}
			return fmt.Errorf("%w: %s: %s%s", f.Err, f.Seen, f.Fix, advice)
		}
	}
	return nil
}
