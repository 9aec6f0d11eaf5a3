package main

import (
	"slices"
	"strings"
)

const proof = "internal/proof"

// The kinds of stores. Those of byDefault are in every machine's reach; the servers of the
// others take long to get, or their clients are in modules of their own.
var (
	byDefault = []string{"etcd", "postgres", "zookeeper", "dynamodb", "gcs"}
	byName    = []string{"azureblob", "consul", "kubernetes", "mysql", "nats", "redis", "s3"}
	known     = slices.Concat(byDefault, byName)
	slow      = []string{"azureblob", "consul", "kubernetes", "s3"} // to get
)

// title is how the names of tests begin that are a store's.
var title = map[string]string{
	"etcd": "Etcd", "postgres": "Postgres", "zookeeper": "ZooKeeper", "dynamodb": "DynamoDB", "gcs": "GCS",
	"azureblob": "AzureBlob", "consul": "Consul", "kubernetes": "Kubernetes", "mysql": "MySQL", "nats": "NATS", "redis": "Redis", "s3": "S3",
}

// of reports whether the part is one of a kind of store: whether its name ends with it.
func (p part) of(kind string) bool { return strings.HasSuffix(p.name, "/"+kind) }

// parts returns all parts, the longest first as far as that is known.
func parts(kinds []string, cases string) []part {
	all := []part{
		{name: "simulation", packages: []string{"./internal/simulation"}, plain: true, cached: true, busy: true, args: []string{"-seeds=100"}, small: true},
		{name: "long/simulation", packages: []string{"./internal/simulation"}, plain: true, cached: true, busy: true, long: true},
		{name: "race/simulation", packages: []string{"./internal/simulation"}, cached: true, busy: true, args: []string{"-seeds=99"}, long: true}, // the race detector also shuffles what happens at one instant
		{name: "core", packages: []string{"."}, cached: true, busy: true, small: true, pages: true},
		{name: "core/conformance", packages: []string{"./conformance"}, plain: true, cached: true, small: true},
		{name: "core/partition", packages: []string{"./partition"}, plain: true, cached: true, small: true},
		{name: "core/backends", packages: []string{"./backends/...", "./fence/..."}, plain: true, cached: true, small: true},
		{name: "core/users", packages: []string{"./electorhttp", "./electortest", "./operate"}, cached: true, small: true},
		{name: "race/conformance", packages: []string{"./conformance"}, cached: true, long: true},
		{name: "race/partition", packages: []string{"./partition"}, cached: true, busy: true, long: true},
		{name: "race/backends", packages: []string{"./backends/...", "./fence/..."}, cached: true},
		{name: "core/internal", packages: []string{"./internal/annex", "./internal/aside", "./internal/awsclient", "./internal/choice", "./internal/clock", "./internal/deps", "./internal/diagnose", "./internal/fakehttp", "./internal/fault", "./internal/fencing", "./internal/inject", "./internal/leak", "./internal/listening", "./internal/modules", "./internal/mute", "./internal/page", "./internal/parts", "./internal/rule", "./internal/seats", "./internal/setup", "./internal/store", "./internal/storeurl", "./internal/table", "./internal/tlsfiles", "./internal/tracing"}, cached: true, small: true},
		{name: "core/commands", packages: []string{"./internal/api", "./internal/dist", "./internal/fuzz/...", "./internal/model", "./internal/mutants", "./internal/overlay", "./internal/pictures"}, cached: true},
		{name: "core/examples", packages: []string{"./examples/..."}, cached: true, pages: true},
	}
	for _, module := range []string{"bench", "cmd/elector", "examples/recipes", "examples/service"} {
		all = append(all, part{name: "modules/" + module, module: module, packages: []string{"./..."}, plain: module != "examples/service", busy: module == "bench", long: module == "bench",
			small: module == "examples/service", pages: true, stores: []string{"etcd", "postgres"}})
	}
	all = append(all, part{name: "pages", module: "cmd/elector", packages: []string{"./internal/cli"}, run: "^TestCommandsOnPages$", plain: true, small: true, pages: true})
	for _, module := range []string{"backends/azureblob", "backends/mysql", "backends/nats", "backends/redis", "backends/s3",
		"integrations/electorcontroller", "integrations/electorgocron", "integrations/electorotel", "integrations/electorprom"} {
		all = append(all, part{name: "modules/" + module, module: module, packages: []string{"./..."}, long: module == "integrations/electorcontroller"}) // to build
	}
	all = append(all,
		part{name: "metrics", module: proof + "/metrics", packages: []string{"./..."}, plain: true, long: true, stores: []string{"prometheus"}},
		part{name: "browser", module: "cmd/elector", packages: []string{"./internal/status"}, tags: "browser", plain: true, apart: true}) // it needs Chromium
	all = append(all, proofs()...)
	for _, kind := range byDefault {
		all = append(all, ofStore(kind, "")...)
	}
	for _, kind := range byName {
		all = append(all, ofStore(kind, kind)...)
	}
	return append(all, apart(kinds, cases)...)
}

// ofStore returns the parts of a kind of store, of which those of byName are built by tag.
func ofStore(kind, tag string) []part {
	begins := "^Test" + title[kind]
	parts := []part{
		{name: "suite/", packages: []string{"./stores"}, run: begins + "$", small: tag == "", table: suite},
		{name: "store/", packages: []string{"./stores"}, run: begins + ".", skip: "Alike$", small: tag == "", long: kind == "nats"}, // which has the suite three times more
		{name: "faults/", packages: []string{"./chaos/network"}, run: "^TestFaults$/^" + kind + "$", small: kind == "etcd" || kind == "postgres", table: faults},
		{name: "records/", packages: []string{"./chaos/raw"}, run: "^TestRecords$/^" + kind + "$"},
		{name: "storms/", packages: []string{"./storms"}, run: begins},
	}
	if kind == "consul" || kind == "nats" {
		parts = append(parts, part{name: "clusters/", packages: []string{"./chaos/cluster"}, run: begins + "$"})
	}
	if kind == "postgres" {
		parts = append(parts, part{name: "alike/", packages: []string{"./stores"}, run: begins + "Alike$", long: true})
	}
	for i := range parts {
		p := &parts[i]
		p.name, p.module, p.tags, p.stores, p.plain, p.shared = p.name+kind, proof, tag, []string{kind}, true, true
		if p.table != "" {
			p.columns = p.stores
		}
	}
	if kind == "kubernetes" { // it has no guard for storms
		parts = slices.DeleteFunc(parts, func(p part) bool { return strings.HasPrefix(p.name, "storms/") })
		parts = append(parts, part{name: "controllers/kubernetes", module: proof + "/controllers", packages: []string{"./..."}, tags: tag, stores: []string{kind}})
	}
	return parts
}

// apart are the parts that run only if they are named: the suite on stores in containers,
// and on the clients that go.mod declares. cases is a pattern.
func apart(kinds []string, cases string) []part {
	if len(kinds) == 0 {
		kinds = byDefault
	}
	tags := strings.Join(kinds, ",")
	var parts []part
	for _, kind := range kinds {
		run := "^Test" + title[kind] + "$/" + cases
		parts = append(parts,
			part{name: "containers/" + kind, tags: "containers," + tags, run: run},
			part{name: "declared/" + kind, tags: tags, run: run, modfile: "bin/declared.mod", stores: []string{kind}})
	}
	for i := range parts {
		p := &parts[i]
		p.packages, p.table, p.columns, p.shared = []string{"./stores"}, suite, []string{kinds[i/2]}, true
	}
	parts = append(parts,
		part{name: "containers/start", packages: []string{"./stores"}, tags: "containers," + tags, run: "^Test(EtcdWithAuth|Docker.*)$", shared: true},
		part{name: "containers/engine", packages: []string{"./internal/engine"}, tags: "containers," + tags})
	for i := range parts {
		parts[i].module, parts[i].plain, parts[i].apart = proof, true, true
	}
	return parts
}

// proofs are the parts of the module that needs real stores and processes, but for those
// of a kind of store.
func proofs() []part {
	var each []string
	for _, kind := range byDefault {
		each = append(each, title[kind])
	}
	kinds := "^Test(" + strings.Join(each, "|") + ")"
	parts := []part{
		{name: "suite/file", packages: []string{"./stores"}, run: "^TestFile", shared: true, small: true, idle: true, table: suite, columns: []string{"file"}},
		{name: "suite/memory", packages: []string{"./stores"}, run: "^TestMemory", shared: true, small: true, idle: true, table: suite, columns: []string{"memory"}},
		{name: "servers", packages: []string{"./stores"}, skip: kinds + "|^Test(File|Memory)", shared: true, stores: byDefault},
		{name: "proxy", packages: []string{"./chaos/network"}, skip: "^TestFaults$", shared: true, stores: byDefault},
		{name: "storms/groups", packages: []string{"./storms"}, skip: kinds, shared: true, stores: byDefault},
		{name: "clusters", packages: []string{"./chaos/cluster"}, shared: true, stores: []string{"etcd", "zookeeper"}},
		{name: "campaign", packages: []string{"./chaos"}, skip: "Mutants?$", shared: true, stores: byDefault, long: true},
		{name: "campaign/mutants", packages: []string{"./chaos"}, run: "Mutants?$", shared: true},
		{name: "checker", packages: []string{"./chaos/checker", "./chaos/ledger", "./chaos/report", "./chaos/history", "./chaos/data", "./chaos/candidate", "./chaos/task"}, busy: true},
		{name: "adversary", packages: []string{"./adversary/..."}, stores: byDefault, long: true},
		{name: "deploys", packages: []string{"./deploys"}, stores: []string{"etcd", "postgres"}},
		{name: "fences", packages: []string{"./fences"}, long: true, stores: []string{"postgres", "mysql", "redis"}},
		{name: "redis", packages: []string{"./redis"}, stores: []string{"redis"}},
		{name: "commands", packages: []string{"./cmd/...", "./child", "./internal/...", "./transactor"}, stores: byDefault},
	}
	for i := range parts {
		parts[i].module, parts[i].plain = proof, true
	}
	return parts
}
