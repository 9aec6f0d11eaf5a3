package main

const fencesql = "./fence/fencesql"

// fenceMutants let a late write pass.
var fenceMutants = []mutant{
	// What guards in the store compare.
	{name: "a value before the attempt", breaks: "RecordPrefix", catch: "in_all_states_of_an_acquisition", pkg: "./backends", parent: "TestRecordPrefix", edits: []edit{
		{"backends/codec.go", "`json:\"attempt\"`\n\tValue      string `json:\"value\"`", "`json:\"value\"`\n\tValue      string `json:\"attempt\"`"},
		{"backends/codec.go", `r.Attempt.String(), r.Value})`, `r.Value, r.Attempt.String()})`},
		{"backends/codec.go", `0","value":""}`, `0"}`}}},
	{name: "a stem that ends in the nonce", breaks: "RecordPrefix", catch: "in_no_other_state", pkg: "./backends", parent: "TestRecordPrefix", edits: []edit{{
		"backends/codec.go", `0","value":""}`, `.0","value":""}`}}},
	{name: "a guard of etcd without a lower end", breaks: "RecordPrefix", catch: "acquired_anew,_sorted_before", pkg: "./backends/etcd", parent: "TestGuard", edits: []edit{{
		"backends/etcd/guard.go", `">", c.stem)`, `">", "")`}}},
	{name: "a guard of etcd without an upper end", breaks: "RecordPrefix", catch: "acquired_anew,_sorted_after", pkg: "./backends/etcd", parent: "TestGuard", edits: []edit{{
		"backends/etcd/guard.go", `c.stem+"\xff"`, `"\xff"`}}},
	{name: "a guard of Consul that an acquisition leaves", breaks: "Guard", catch: "acquired_anew", pkg: "./backends/consul", parent: "TestCommit", edits: []edit{{
		"backends/consul/guard.go", `operations := []Operation{{Verb: "delete-tree", Key: b.guards(name)}}`, `var operations []Operation`}}},
	{name: "a guard of Consul that a release leaves", breaks: "Guard", catch: "vacant", pkg: "./backends/consul", parent: "TestCommit", edits: []edit{{
		"backends/consul/consul.go", `return !next.Vacant() && !prev.Vacant() &&`, `return`}}},
	{name: "every refusal of Consul a conflict", breaks: "Errors", catch: "no_right_to_write", pkg: "./backends/consul", parent: "TestOnlyAStaleIndexIsAConflict", edits: []edit{{
		"backends/consul/errors.go", `ok && r.says(0, staleIndex)`, `ok && r != nil`}}},
	{name: "a proxy's 404 no record on Consul", breaks: "Errors", catch: "a_404_of_a_proxy", pkg: "./backends/consul", parent: "TestMissing", edits: []edit{{
		"backends/consul/request.go", `	index, err := a.index() // which`, `	index, err := a.index()
	if a.status == http.StatusNotFound {
		err = nil
	}
	// which`}}},
	{name: "a write of Consul that follows redirects", breaks: "Swap", catch: "307", pkg: "./backends/consul", parent: "TestNothingIsSentTwice", edits: []edit{{
		"backends/consul/consul.go", `func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }`, `nil`}}},
	{name: "a read in Consul's default mode", breaks: "Load", catch: "Load", pkg: "./backends/consul", parent: "TestConsistent", edits: []edit{{
		"backends/consul/request.go", `query.Set(consistent, "")`, ``}}},
	{name: "extensions left out of the comparison on MySQL", breaks: "Swap", catch: "TestWholeRow", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `strings.Join(fields, " = ? and "))`, `strings.Join(fields[:6], " = ? and "))`}, {
		"backends/mysql/mysql.go", `row(was)...`, `row(was)[:6]...`}}},
	{name: "every failed insert on MySQL a conflict", breaks: "Errors", catch: "TestNothingIsSentTwice", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `if number(err) == duplicate {`, `if number(err) != 0 {`}}},
	{name: "a read from a replica of MySQL", breaks: "Load", catch: "TestReadOfReplica", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `case (on(readOnly) || on(engineReadOnly)) &&`, `case (on(readOnly) && on(engineReadOnly)) &&`}}},
	{name: "a cluster of Galera for MySQL", breaks: "Open", catch: "a_node_of_Galera", parent: "TestSettle", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `case on(is["wsrep_on"]) && !b.options.OneNode:`, `case on(is["wsrep_on"]) && b.options.OneNode:`}}},
	{name: "a configuration for MySQL without autocommit", breaks: "Open", catch: "TestNewRefuses", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/open.go", `"autocommit") && !on(`, `"autocommit") && value == "" && !on(`}}},
	{name: "a write that no replica of MySQL has acknowledged", breaks: "Swap", catch: "TestSemiSync", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `case !on(status):`, `case status == "":`}}},
	{name: "a write to MySQL repeated after it was sent", breaks: "Swap", catch: "TestSemiSync", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `replica has the write: %v"`, `replica has the write: %w"`}}},
	{name: "a guard of MySQL without a lock", breaks: "Guard", catch: "TestGuard", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/guard.go", ` lock in share mode)"`, `)"`}}},
	{name: "a guard of MySQL that a release leaves", breaks: "Guard", catch: "TestTerm", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/mysql.go", `	if r.Vacant() {
		return fmt`, `	if false {
		return fmt`}}},

	// One SQL fence, whatever elects.
	{name: "fencesql: work before the table is entered", breaks: "Transact", catch: "the_election_on_another_store", pkg: fencesql, parent: "TestTransact", edits: []edit{
		{"fence/fencesql/transact.go", "	if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {\n		return err\n	}\n", ""},
		{"fence/fencesql/transact.go", "	if _, err := lease.Acquisition(); err != nil {\n", "	if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {\n		return err\n	}\n	if _, err := lease.Acquisition(); err != nil {\n"}}},
	{name: "fencesql: the guard instead of the table", breaks: "Transact", catch: "another_database_with_such_a_table", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {`,
		`if _, ok := backends.As[backends.SQLGuarder](a.Backend); ok {
	} else if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {`}}},
	{name: "fencesql: the table without the guard", breaks: "Transact", catch: "the_election_in_the_same_database", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `	err = t.guard(ctx, db, tx, a)`, `	_ = t.guard`}}},
	{name: "fencesql: another acquisition taken for another database", breaks: "Transact", catch: "another_acquisition", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `case latest.Vacant() || latest.Token != a.Record.Token || latest.Attempt.Nonce != a.Record.Attempt.Nonce:`, `case latest.Vacant():`}}},
	{name: "fencesql: a release taken for another database", breaks: "Transact", catch: "a_release", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `case latest.Vacant() || latest.Token`, `case latest.Token`}}},
	{name: "fencesql: a guard that asks the store for the token alone", breaks: "Transact", catch: "another_acquisition_with_the_same_token", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", ` || latest.Attempt.Nonce != a.Record.Attempt.Nonce:`, `:`}}},
	{name: "fencesql: another database taken for another acquisition", breaks: "Transact", catch: "another_database_with_such_a_table", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `case latest.Vacant() || latest.Token`, `case latest.Exists() || latest.Token`}}},
	{name: "fencesql: no answer of the store taken for another database", breaks: "Transact", catch: "another_record,_and_no_answer_of_the_store", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `	case err != nil:
		return fmt.Errorf("fencesql: the database`, `	case err != nil:
		return nil
		return fmt.Errorf("fencesql: the database`}}},
	{name: "fencesql: every failed guard taken for another database", breaks: "Transact", catch: "a_guard_in_a_deadlock", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `case !g.Absent(err):`, `case false:`}}},
	{name: "fencesql: a lease not looked at again", breaks: "Transact", catch: "a_lease_that_ends_in_between", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `if _, err := lease.Acquisition(); err != nil {`, `if false {`}}},
	{name: "fencesql: a transaction that may stand idle for ever", breaks: "Transact", catch: "the_bound_of_PostgreSQL", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/fencesql.go", `max(idle.Milliseconds(), 1)`, `idle.Milliseconds()`}}},
	{name: "fencesql: a bound that stays on a connection to MySQL", breaks: "Transact", catch: "the_bound_of_MySQL", pkg: fencesql, parent: "TestTransact", edits: []edit{{
		"fence/fencesql/transact.go", `		tx.Rollback()
		release(ctx, conn)`, `		tx.Rollback()
		conn.Close()`}}},
	{name: "a query for fencesql on PostgreSQL without a lock", breaks: "Guard", catch: "query", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `starts_with(attempt, $3) for key share)`, `starts_with(attempt, $3))`}}},
	{name: "a query for fencesql on PostgreSQL without the index", breaks: "Guard", catch: "index", pkg: "./backends/postgres", parent: "TestGuard", edits: []edit{{
		"backends/postgres/guard.go", `}, b.guarded`, `}, true`}}},
	{name: "a query for fencesql on MySQL without a lock", breaks: "Guard", catch: "TestGuard", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/guard.go", `term = ? lock in share mode"`, `term = ?"`}}},

	// The door of a resource.
	{name: "a higher token enters before older writes have left", breaks: "Fence", catch: "older_writes_leave_first", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case r.raising:`}}},
	{name: "a token not remembered while its write waits", breaks: "Fence", catch: "a_token_counts_while_its_write_waits", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case token < r.highest:`, `case token < r.highest && r.older == 0:`}, {
		"fencing.go", `case r.older > 0 || r.raising:`, `case token == r.highest && (r.older > 0 || r.raising):`}}},
	{name: "a token forgotten whose write gave up", breaks: "Fence", catch: "a_token_counts_although_its_write_fails", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `		case err != nil:
			return nil, nil, err`, `		case err != nil:
			r.highest = 0
			return nil, nil, err`}}},
	{name: "equal tokens one after the other", breaks: "Fence", catch: "equal_tokens_enter_together", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case len(r.inside) > 0 || r.older > 0 || r.raising:`}}},
	{name: "equal tokens refused", breaks: "Fence", catch: "equal_tokens_enter_together", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case token < r.highest:`, `case token < r.highest || len(r.inside) > 0:`}}},
	{name: "a write that panics never leaves", breaks: "Fence", catch: "a_write_panics", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `	defer leave()
	return write(ctx)`, `	err = write(ctx)
	leave()
	return err`}}},
	{name: "a Keeper that raises after the write", breaks: "Keeper", catch: "kept_before_the_write", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case f.Keeper != nil && r.kept < token:`, `case false:`}, {
		"fencing.go", `return inside, func() { f.leave(r, v) }, nil`, `return inside, func() {
				if f.Keeper != nil {
					f.Keeper.Raise(ctx, name, token)
				}
				f.leave(r, v)
			}, nil`}}},
	{name: "a write while its token is being kept", breaks: "Keeper", catch: "the_Keeper_hangs_with_an_older_token", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `case r.older > 0 || r.raising:`, `case r.older > 0:`}, {
		"fencing.go", `f.Keeper != nil && r.kept < token:`, `f.Keeper != nil && r.kept < token && !r.raising:`}}},
	{name: "a Keeper that hangs for an older token keeps a newer one out", breaks: "Keeper", catch: "the_Keeper_hangs_with_an_older_token", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `f.Keeper.Raise(inside, name, token)`, `f.Keeper.Raise(context.WithoutCancel(inside), name, token)`}}},
	{name: "MaxAhead ignored", breaks: "MaxAhead", catch: "too_far_ahead", pkg: ".", parent: "TestFence", edits: []edit{{
		"fencing.go", `if f.MaxAhead > 0 &&`, `if f.MaxAhead < 0 &&`}}},
	{name: "what a Keeper refuses reported as the Fence's own refusal", breaks: "Trace", catch: "a_fence", pkg: ".", parent: "TestTrace", edits: []edit{{
		"fencing.go", `		case err != nil:
			return nil, nil, err`, `		case err != nil:
			refused = &StaleError{name, token, r.highest}
			return nil, nil, err`}}},
	{name: "HTTP: admit, then handle", breaks: "Fence", catch: "served_first", pkg: "./fence/fencehttp", parent: "TestOlder", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `	defer leave()
`, `	leave()
`}}},
	{name: "HTTP: a leader that was stopped in a body keeps others out", breaks: "Handler", catch: "stopped_in_the_middle", pkg: "./fence/fencehttp", parent: "TestBody", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if errors.Is(context.Cause(b.inside), elector.ErrStale) {`, `if false {`}}},
	{name: "HTTP: the end of a body ends all later requests on its connection", breaks: "Handler", catch: "on_the_connection_of_an_older_request", pkg: "./fence/fencehttp", parent: "TestNotServed", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if b.reading > 0 {`, `if b.reading >= 0 {`}, {
		"fence/fencehttp/fencehttp.go", `if b.cut && `, `if false && `}}},
	{name: "HTTP: a request with an ended context answered with 200, and not served", breaks: "Handler", catch: "its_context_has_ended", pkg: "./fence/fencehttp", parent: "TestNotServed", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if r.Context().Err() != nil && r.ProtoMajor == 1 {`, `if r.Context().Err() != nil {
			return
		}
		if r.Context().Err() != nil && r.ProtoMajor == 1 {`}}},
	{name: "HTTP: a redirect carries the token to another host", breaks: "Transport", catch: "redirects/there", pkg: "./fence/fencehttp", parent: "TestTransport", edits: []edit{{
		"fence/fencehttp/fencehttp.go", `if r.URL.Host == origin(r).URL.Host {`, `if r == origin(r) || true {`}}},
	{name: "gRPC: the token looked at when a stream opens", breaks: "Fence", catch: "message", pkg: "./fence/fencegrpc", parent: "TestOlder", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `if refused := f.enter(); refused`, `if refused := error(nil); refused`}}},
	{name: "gRPC: what a stream writes at its end is not fenced", breaks: "Fence", catch: "end", pkg: "./fence/fencegrpc", parent: "TestOlder", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	if refused := f.enter(); refused`, `	if errors.Is(err, io.EOF) {
		return err
	}
	if refused := f.enter(); refused`}}},
	{name: "gRPC: what a stream writes after an error is not fenced", breaks: "Fence", catch: "inside", pkg: "./fence/fencegrpc", parent: "TestBrokenMessage", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	if refused := f.enter(); refused`, `	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if refused := f.enter(); refused`}}},
	{name: "gRPC: a refused stream's context goes on", breaks: "Fence", catch: "overtaken", pkg: "./fence/fencegrpc", parent: "TestBrokenMessage", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `		f.cancel(err)
`, ``}}},
	{name: "gRPC: an idle stream keeps others out", breaks: "Server", catch: "stream", pkg: "./fence/fencegrpc", parent: "TestIdle", edits: []edit{{
		"fence/fencegrpc/fencegrpc.go", `	f.exchange(func() {})
	err := f.ServerStream.RecvMsg(message)`, `	err := f.ServerStream.RecvMsg(message)`}}},

	// The fences of the clouds' stores.
	{name: "the tokens of objects compared as texts", breaks: "Fencing", catch: "a_longer_token", pkg: "./backends/gcs", parent: "TestFence", edits: []edit{{
		"internal/fencing/fencing.go", `case token > a.Record.Token:`, `case token > 0 && digits > strconv.FormatUint(a.Record.Token, 10):`}}},
	{name: "an object fenced by two elections", breaks: "Fencing", catch: "another_election", pkg: "./backends/gcs", parent: "TestFence", edits: []edit{{
		"internal/fencing/fencing.go", `election != a.Election {`, `election == "" {`}}},
	{name: "the caller's condition taken for the fence of an item", breaks: "Fencing", catch: "no_item", pkg: "./backends/dynamodb", parent: "TestPutRefused", edits: []edit{{
		"backends/dynamodb/fence.go", `failed.Item == nil && input.ConditionExpression == nil`, `failed.Item == nil`}}},
	{name: "a claim by an earlier leader", breaks: "Fencing", catch: "claim", pkg: "./backends/dynamodb", parent: "TestTerm", edits: []edit{{
		"backends/dynamodb/fence.go", `#token < :token`, `#token <> :token`}}},
	{name: "the caller's reason taken for the term's", breaks: "Fencing", catch: "None_ConditionalCheckFailed", pkg: "./backends/dynamodb", parent: "TestTerm", edits: []edit{{
		"backends/dynamodb/fence.go", `i == len(items) && reason`, `i == 0 && reason`}}},
}
