package chaos

import (
	"github.com/elector-go/elector/internal/overlay"
	"github.com/elector-go/elector/internal/proof/chaos/checker"
)

// A Mutant is a known way to get the election wrong, built into candidates that
// are otherwise real: a campaign must find it.
type Mutant struct {
	Breaks string   // what it does, for people
	Rules  []string // of the checker, any of which finds it
	Places []string // where it is looked for; it is the same everywhere
	Groups bool     // it breaks groups: all rounds are such; else none is
	edits  []overlay.Edit
}

// Mutants are by their names.
var Mutants = map[string]Mutant{
	"holder-overstays": {
		Breaks: "a holder trusts its lease for one and a half TTLs",
		Rules:  []string{"mx/two-valid"},
		Places: []string{"etcd", "file"},
		edits:  []overlay.Edit{{File: "internal/rule/rule.go", Old: "return ttl - time.Duration(float64(ttl)*drift)", New: "return ttl + ttl/2"}},
	},
	"challenger-hurries": {
		Breaks: "a challenger waits for half a TTL",
		Rules:  []string{"mx/two-valid", checker.TooEarly},
		Places: []string{"postgres", "file"},
		edits:  []overlay.Edit{{File: "internal/rule/rule.go", Old: "return ttl + time.Duration(float64(ttl)*drift)", New: "return ttl / 2"}},
	},
	"token-stays": {
		Breaks: "a takeover keeps the token of the holder before it",
		Rules:  []string{"tok/strict"},
		Places: []string{"zookeeper", "file"},
		edits:  []overlay.Edit{{File: "internal/rule/view.go", Old: "	return token, true\n}", New: "	if v.record.Exists() && !v.record.Vacant() {\n\t\ttoken = v.record.Token\n\t}\n\treturn token, true\n}"}},
	},
	"edits-adopted": {
		Breaks: "a holder goes on from an edited record",
		Rules:  []string{"rec/edited"},
		Places: []string{"postgres", "file"},
		edits:  []overlay.Edit{{File: "acquisition.go", Old: "r.Token != w.token || r.Holder != holder || r.TTL != o.TTL ||", New: "false && r.Holder != holder ||"}},
	},
	"critical-ignored": {
		Breaks: "a critical extension keeps no candidate away",
		Rules:  []string{"rec/critical"},
		Places: []string{"etcd", "file"},
		edits:  []overlay.Edit{{File: "internal/rule/view.go", Old: "	case Critical(v.record) != \"\":", New: "	case false:"}},
	},
	"kept-dropped": {
		Breaks: "an acquisition drops the extensions that everybody is to keep",
		Rules:  []string{"rec/kept"},
		Places: []string{"postgres", "file"},
		edits:  []overlay.Edit{{File: "internal/annex/annex.go", Old: "into(prev.Extensions.Class('k'))", New: "into(prev.Extensions.Class('-'))"}},
	},
	"gives-up": {
		Breaks: "a candidate gives up when the store refuses it",
		Rules:  []string{checker.GaveUp, checker.NotBack},
		Places: []string{"postgres", "redis"},
		edits:  []overlay.Edit{{File: "errors.go", Old: "return f.permanent() && (f.kind == hopeless || !e.answered.Load())", New: "return f.permanent()"}},
	},
	"never-reconnects": {
		Breaks: "a candidate never signs in again",
		Rules:  []string{checker.NotBack},
		Places: []string{"etcd"},
		edits:  []overlay.Edit{{File: "backends/etcd/session.go", Old: "		s.in = false\n", New: ""}},
	},
	"never-watches": {
		Breaks: "a member never replaces one that is gone",
		Rules:  []string{checker.NotBack},
		Places: []string{"postgres", "file"},
		Groups: true,
		edits:  []overlay.Edit{{File: "partition/govern.go", Old: "		if f.deposable(i) <= g.now() {", New: "		if f.deposable(i) < -1 {"}},
	},
	"drain-not-awaited": {
		Breaks: "a partition that moves is free before its worker has returned",
		Rules:  []string{"mx/two-valid"},
		Places: []string{"postgres", "file"},
		Groups: true,
		edits: []overlay.Edit{{File: "partition/move.go", Old: `			audit := x.next
			x.enter(draining, now)
			x.until = s.deadline(now)
			x.next = min(audit, x.until)
			x.lease.stop(`, New: `			x.enter(ended, now)
			x.until = now
			x.lease.stop(`}},
	},
	"any-state-over": {
		Breaks: "a partition is taken from a member of which nothing is known",
		Rules:  []string{"mx/two-valid"},
		Places: []string{"etcd", "file"},
		Groups: true,
		edits: []overlay.Edit{{File: "internal/rule/partition.go", Old: `	if !absent {
		return Never
	}`, New: `	if !absent {
		return 0
	}`}},
	},
	"guard-left-out": {
		Breaks: "a leader only checks its lease before it writes to data in the store",
		Rules:  []string{"tok/guard"},
		Places: []string{"etcd", "postgres"},
		edits: []overlay.Edit{
			{File: dataFile, Old: "etcd.Commit(ctx, client, lease, put)", New: "client.Do(ctx, put)"},
			{File: "backends/consul/guard.go", Old: "append([]Operation{c.operation()}, operations...)", New: "operations"},
			{File: "backends/nats/guard.go", Old: "of: c.subject, expected: c.seq,", New: "of: c.keys() + \"nothing\", expected: 0,"},
			{File: "backends/mysql/guard.go", Old: "tx.ExecContext(ctx, statement)", New: "tx.ExecContext(ctx, unbound+statement[:0])"},
			{File: "backends/redis/script.go", Old: "if string.sub(redis.call('GET', KEYS[1]) or '', 1, #ARGV[2]) ~= ARGV[2] then return 0 end", New: ""},
			{File: dataFile, Old: "postgres.Transact(ctx, d.pool, lease, func", New: "pgx.BeginFunc(ctx, d.pool, func"},
			{File: dataFile, Old: "\"github.com/elector-go/elector/backends/postgres\"", New: ""},
		},
	},
}

const dataFile = "internal/proof/chaos/data/data.go"
