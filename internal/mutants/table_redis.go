package main

func init() {
	const module = "backends/redis"
	for _, m := range redisMutants {
		m.pkg, m.module = ".", module
		for i := range m.edits {
			m.edits[i].File = module + "/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
	mutants = append(mutants, lossyMutants...)
}

// redisMutants use a server that may lose acknowledged writes, or lose one themselves.
var redisMutants = []mutant{
	{name: "a primary of Redis with replicas used", breaks: "Durability", catch: "a_replica", parent: "TestRefuses", edits: []edit{{
		"server.go", `case is["connected_slaves"] != "0":`, `case false:`}}},
	{name: "a replica of Redis without its link overlooked", breaks: "Durability", catch: "a_link_that_is_cut", parent: "TestRefuses", edits: []edit{{
		"server.go", `case is["repl_backlog_active"] != "0":`, `case false:`}}},
	{name: "a promoted replica of Redis used", breaks: "Durability", catch: "promoted", parent: "TestRefuses", edits: []edit{{
		"server.go", `case is["second_repl_offset"] != "-1":`, `case false:`}}},
	{name: "a connection to Redis that is made during Close stays", breaks: "Close", catch: "TestConnectedLate", edits: []edit{{
		"open.go", `if b.closed.Load() {`, `if b.closed.Load() && false {`}}},
	{name: "Redis: a right that the script's commands lack is an outage", breaks: "Errors", catch: "TestNothingIsSentTwice", edits: []edit{{
		"errors.go", `case is(err, "NOPERM", "ERR The user executing the script can't"):`, `case is(err, "NOPERM"):`}}},
	{name: "a Redis that syncs each second used", breaks: "Durability", catch: "fsync_each_second", parent: "TestRefuses", edits: []edit{{
		"server.go", `config["appendfsync"] != "always" ||`, ``}}},
	{name: "a Redis that does not sync during a rewrite used", breaks: "Durability", catch: "no_fsync_on_rewrite", parent: "TestRefuses", edits: []edit{{
		"server.go", ` || config["no-appendfsync-on-rewrite"] != "no"`, ``}}},
	{name: "a Redis that evicts records used", breaks: "Durability", catch: "eviction", parent: "TestRefuses", edits: []edit{{
		"server.go", `p != "noeviction" && !strings.HasPrefix(p, "volatile-")`, `p == ""`}}},
	{name: "a Cluster of Redis used where a loss is accepted", breaks: "Durability", catch: "a_Cluster", parent: "TestRefuses", edits: []edit{{
		"server.go", `&& f.What != "server" &&`, `&&`}}},
	{name: "Redis asked when it is opened alone", breaks: "Durability", catch: "fsync_each_second", parent: "TestRefuses", edits: []edit{{
		"server.go", `	if b.options.ReadOnly {
		return nil
	}`, `	if b.options.ReadOnly || b.base.Store() != "" && b.opened.Swap(true) {
		return nil
	}`}, {
		"redis.go", `	user    string`, `	user    string
	opened  atomic.Bool`}}},
	{name: "a read of Redis that does not look at the role", breaks: "Load", catch: "TestLoadLooks", edits: []edit{{
		"redis.go", `		if err := b.options.Durability.checkReplication(parseInfo(replication.Val())); err != nil {
			if errors.Is(err, backends.ErrReadOnly) {
				b.leave(ctx)
			}
			return nil, err
		}
	}
	outcomes`, `	}
	outcomes`}}},
	{name: "a connection to a Redis kept that became a replica", breaks: "Load", catch: "TestSeveralServers", edits: []edit{{
		"redis.go", `				b.leave(ctx)
`, ``}}},
	{name: "a refused connection to Redis an empty answer", breaks: "Load", catch: "TestRefusedConnection", edits: []edit{{
		"redis.go", `answered(err) && c.Err() == err`, `answered(err)`}}},
	{name: "a Redis that loads its data misconfigured", breaks: "Errors", catch: "loading", parent: "TestRefuses", edits: []edit{{
		"server.go", `if shown["loading"] == "1" {`, `if false {`}}},
	{name: "a Watch of Redis that outlives its context", breaks: "Watch", catch: "INFO,_closes_false", parent: "TestWatchEnds", edits: []edit{{
		"open.go", `t.close(conn)`, `_ = t`}}},
	{name: "a write that go-redis repeats", breaks: "Swap", catch: "TestNothingIsSentTwice", edits: []edit{{
		"open.go", `c.MaxRetries = -1`, `c.MaxRetries = 3`}}},
}

var lossyMutants = []mutant{
	{name: "a guard on a store that loses writes", breaks: "Guard", catch: "TestLossy", pkg: ".", edits: []edit{{
		"internal/fencing/fencing.go", `case lossy != "":`, `case false && lossy != "":`}}},
	{name: "a lease that hides a lossy store", breaks: "Lossy", catch: "TestLossy", pkg: ".", edits: []edit{{
		"elector.go", `lossy: d.Lossy, `, ``}}},
}
