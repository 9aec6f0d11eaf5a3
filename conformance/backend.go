package conformance

// backendCases run against the backend alone (B in the list of cases), through
// several handles on one store.
var backendCases = []testCase{
	{name: "raw/harness", raw: true, run: rawHarness},

	{name: "mx/same-id", run: sameID},
	{name: "mx/race", run: race},
	{name: "mx/aba", raw: true, run: recreated},
	{name: "res/foreign", run: lateRelease},
	{name: "part/stale-read", run: staleRead},

	{name: "tok/strict", run: exactRecords},
	{name: "bad/garbage", raw: true, run: garbage},
	{name: "bad/ttl", raw: true, run: badTTL},
	{name: "bad/newer", raw: true, run: newerSchema},
	{name: "rec/kept", run: extensionsKept},
	{name: "rec/tenure", run: extensionsDropped},
	{name: "rec/critical", run: extensionsCritical},
	{name: "rec/bounds", raw: true, run: extensionBounds},
	{name: "bad/schema", run: wrongSetup},
	{name: "bad/name", run: badNames},

	{name: "watch/subscribe", run: watchSubscribe},
	{name: "watch/many", run: watchMany},
	{name: "watch/end", run: watchEnd},

	{name: "presence/deposed", raw: true, run: presenceDeposed},
	{name: "presence/end", run: presenceEnd},

	{name: "batch/each", run: batchEach},
	{name: "batch/race", run: batchRace},
	{name: "batch/presence", raw: true, run: batchPresence},
	{name: "batch/cancel", run: batchCancel},

	{name: "ctx/cancel", run: endedContext},
	{name: "close/idempotent", run: closeTwice},
	{name: "store/describe", run: describes},
}
