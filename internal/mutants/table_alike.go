package main

func init() { mutants = append(mutants, alikeMutants...) }

// alikeMutants take servers that only look like a store for that store.
var alikeMutants = []mutant{
	{name: "TiDB for MySQL, by its version alone", breaks: "Open", catch: "TestAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/alike.go", `version += " tidb"`, `version += ""`}}},
	{name: "Vitess for MySQL, by its version alone", breaks: "Open", catch: "TestAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/alike.go", `if strings.Contains(version, "version: ") &&`, `if false &&`}}},
	{name: "servers like MySQL that refuse the session's settings", breaks: "Open", catch: "TestAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `cmp.Or(alike(is), failed, err)`, `cmp.Or(failed, alike(is), err)`}}},
	{name: "servers like MySQL, to read alone", breaks: "Open", catch: "TestAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `if err := cmp.Or(alike(is), failed, err); err != nil {`, `if err := cmp.Or(alike(is), failed, err); err != nil && !b.options.ReadOnly {`}}},
	{name: "a guard of MySQL on TiDB", breaks: "Guard", catch: "TiDB", parent: "TestGuardAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/alike.go", `"/*T! elector`, `"/* elector`}}},
	{name: "a guard of MySQL on Vitess", breaks: "Guard", catch: "Vitess", parent: "TestGuardAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/alike.go", `is := "@@version like '%itess%' or `, `is := "`}}},
	{name: "a guard of MySQL on a node of Galera", breaks: "Guard", catch: "Galera", parent: "TestGuardAlike", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/alike.go", `is += " or @@global.wsrep_on"`, `is += ""`}}},
	{name: "fencesql: a server where the guard keeps no successor out", breaks: "Transact", catch: "a_server_where_the_guard_keeps_no_successor_out", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `case err == nil && n > 1:`, `case err == nil && n > 2:`}}},

	{name: "a server without pg_notify for PostgreSQL", breaks: "Open", catch: "Redshift", pkg: "./backends/postgres", parent: "TestRecognize", edits: []edit{{
		"backends/postgres/alike.go", `case !notifies:`, `case false:`}}},
	{name: "YugabyteDB for PostgreSQL", breaks: "Open", catch: "YugabyteDB", pkg: "./backends/postgres", parent: "TestRecognize", edits: []edit{{
		"backends/postgres/alike.go", `strings.Contains(version, "-YB-")`, `false`}}},
	{name: "a guard on what looks like PostgreSQL", breaks: "Guard", catch: "TestGuardAlike", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/guard.go", `if err == nil && b.like != "" {`, `if false {`}}},
	{name: "a query for fencesql on what looks like PostgreSQL", breaks: "Guard", catch: "TestGuardAlike", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/guard.go", `b.guarded && b.like == ""`, `b.guarded`}}},
	{name: "reads from followers of CockroachDB", breaks: "Load", catch: "TestFollowers", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/alike.go", `	if b.like != "" {
		sql`, `	if false {
		sql`}}},
	{name: "shared renewals on CockroachDB", breaks: "Swap", catch: "TestPlain", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/batch.go", `if b.like != "" {`, `if false {`}}},
	{name: "a row lock on CockroachDB", breaks: "Load", catch: "TestPlain", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/postgres.go", `		return b.read(ctx, name, plainRow)`, `		return b.read(ctx, name, lockRow)`}}},
	{name: "a comparison on CockroachDB without the extensions", breaks: "Swap", catch: "TestPlain", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/alike.go", ` and ext = $16::text`, ``}}},
	{name: "pg_notify without listening", breaks: "Swap", catch: "TestListenNotify", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/alike.go", `	if b.noListen {
		sql`, `	if false {
		sql`}}},

	{name: "an etcd that ignores comparisons", breaks: "Open", catch: "comparisons_ignored", pkg: "./backends/etcd", parent: "TestAlike", edits: []edit{{
		"backends/etcd/alike.go", `if answer.Succeeded || `, `if `}}},
	{name: "an etcd that ignores comparisons in a batch", breaks: "Open", catch: "comparisons_in_a_transaction_ignored", pkg: "./backends/etcd", parent: "TestAlike", edits: []edit{{
		"backends/etcd/alike.go", `&& !within.Succeeded &&`, `&&`}}},
	{name: "kine for etcd", breaks: "Open", catch: "kine", pkg: "./backends/etcd", parent: "TestAlike", edits: []edit{{
		"backends/etcd/alike.go", `c == codes.InvalidArgument || `, ``}}},
}
