package main

const natsModule = "backends/nats"

func init() { mutants = append(mutants, natsMutants...) }

// natsMutants break the backend on NATS.
var natsMutants = []mutant{
	{name: "a read from any replica of NATS", breaks: "Load", catch: "TestNeverDirect", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `"STREAM.MSG.GET."+b.stream()`, `"DIRECT.GET."+b.stream()`}}},
	{name: "a read on NATS that no majority confirms", breaks: "Load", catch: "TestConfirmedRead", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", `err != nil || !b.replicated.Load() || b.base.ReadOnly() {`, `true {`}}},
	{name: "a confirmation on NATS of whatever is there", breaks: "Load", catch: "TestConfirmedRead", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `		return false, nil
	}
	return err == nil, err`, `		return true, nil
	}
	return err == nil, err`}}},
	{name: "a confirmation on NATS that the replicas refuse", breaks: "Load", catch: "TestConfirmedRead", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `natsgo.Header{"KV-Operation": {"DEL"}},
	})`, `natsgo.Header{"Nats-Expected-Last-Msg-Id": {"x"}},
	})`}}},
	{name: "a deposed leader of NATS taken for one that answers", breaks: "Load", catch: "TestAnotherServerThanADeposedLeaders", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `!b.replicated.Load() || b.base.ReadOnly():
		b.silence`, `true:
		b.silence`}}},
	{name: "a server of NATS that only answers that it is unavailable", breaks: "Load", catch: "TestAnotherServerThanADeposedLeaders", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `answer.Error.unavailable():
		b.unanswered(natsgo.ErrNoResponders)`, `answer.Error.unavailable():
		b.silence.end()`}}},
	{name: "a watch on NATS that waits for ever for its consumer", breaks: "Watch", catch: "TestWatchUnanswered", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/watch.go", `	bounded, cancel := context.WithTimeout(ctx, silent)`, `	bounded, cancel := context.WithTimeout(ctx, 1000*silent)`}}},
	{name: "a request on NATS that waits for a dead connection", breaks: "Load", catch: "TestEndsWithContext", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `backends.WithContext(ctx, b.base, func() (*natsgo.Msg, error) {`, `backends.WithContext(context.WithoutCancel(ctx), b.base, func() (*natsgo.Msg, error) {`}}},
	{name: "a Put on NATS of what its caller writes later", breaks: "Guard", catch: "acquired", parent: "TestPut", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/guard.go", `bytes.Clone(value)`, `bytes.Trim(value, "")`}}},
	{name: "a write on NATS that waits for a dead connection", breaks: "Swap", catch: "TestEndsWithContext", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `	header := b.condition(w.of`, `	b.nc.ConnectedServerVersion()
	header := b.condition(w.of`}}},
	{name: "a watch on NATS that waits for a dead connection", breaks: "Watch", catch: "TestEndsWithContext", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/watch.go", `backends.WithContext(ctx, b.base,`, `backends.WithContext(context.WithoutCancel(ctx), b.base,`}}},
	{name: "a write to a bucket of NATS that was made anew", breaks: "Swap", catch: "TestBucketMadeAnew", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", `		w.of = life + ".*"`, `		_ = life`}}},
	{name: "a strange marker on NATS taken for a deleted record", breaks: "Load", catch: "TestForeignMarker", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/key.go", `	if m.Seq == 0 {`, `	if m.absent() {`}}},
	{name: "a second life on NATS after a strange marker", breaks: "Swap", catch: "TestForeignMarker", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", `			if s.life, _, err = b.place(name, m); err != nil {`, `			if life, _, e := b.place(name, m); e == nil {
				s.life = life
			} else if false {`}}},
	{name: "every refusal of NATS a conflict", breaks: "Errors", catch: "no_JetStream", parent: "TestAnswers", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `answer.Error != nil && answer.Error.ErrCode == codeWrongSequence:`, `answer.Error != nil:`}}},
	{name: "the acknowledgement of another stream of NATS", breaks: "Swap", catch: "another_stream's_ack", parent: "TestAnswers", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `case answer.Stream != b.stream() || answer.Seq == 0`, `case answer.Seq == 0`}}},
	{name: "a server of NATS that ignores conditions", breaks: "Open", catch: "TestOldServer", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/stream.go", `var least = [2]int{2, 12}`, `var least = [2]int{2, 11}`}}},
	{name: "a bucket of NATS that forgets", breaks: "Open", catch: "TestSuitable", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/stream.go", `no(c.MaxAge > 0,`, `no(c.MaxAge < 0,`}}},
	{name: "a guard of NATS that a release leaves", breaks: "Guard", catch: "vacant", parent: "TestPut", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", `return !next.Vacant() && !prev.Vacant() &&`, `return`}}},
	{name: "a guard of NATS that an acquisition leaves", breaks: "Guard", catch: "acquired_anew", parent: "TestPut", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", ` && next.Attempt.Nonce == prev.Attempt.Nonce`, ``}}},
	{name: "a guard of NATS that outlives a deletion", breaks: "Guard", catch: "TestPutAfterDeletion", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/nats.go", `			if s.life, _, err = b.place(name, m); err != nil {`, `			if _, _, err = b.place(name, m); err != nil {`}}},
	{name: "a write of NATS under way taken for a stale token", breaks: "Guard", catch: "TestPutWhileAnotherIsUnderWay", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `return 0, errInProcess //`, `return 0, backends.ErrConflict //`}}},
	{name: "a refusal by a deposed leader of NATS", breaks: "Swap", catch: "TestRefusalByADeposedLeader", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `errors.Is(err, backends.ErrConflict) && b.replicated.Load()`, `false`}}},
	{name: "a write of NATS under way taken for another version", breaks: "Swap", catch: "TestSwapWhileAnotherIsUnderWay", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/request.go", `return 0, errInProcess //`, `return 0, backends.ErrConflict //`}}},
	{name: "writes that NATS's client keeps for later", breaks: "Swap", catch: "TestParse", module: natsModule, pkg: ".", edits: []edit{{
		"backends/nats/open.go", `options.ReconnectBufSize = -1 //`, `//`}}},
}
