package conformance

// The cases with the backend alone use several handles on one store.

// basicCases are the rules that all others rest on. Cheap cases that find many
// defects come first.
var basicCases = []testCase{
	{name: "store/describe", run: describes},
	{name: "part/read-after-write", run: readAfterWrite},
	{name: "tok/strict", run: exactRecords},
	{name: "mx/attempt", run: attemptAlone},
	{name: "mx/race", run: race},
	{name: "ctx/cancel", run: endedContext},
	{name: "raw/harness", raw: true, run: rawHarness},
	{name: "mx/aba", raw: true, run: recreated},
	{name: "bad/name", run: badNames},
}

// backendCases are the other rules.
var backendCases = []testCase{
	{name: "mx/same-id", run: sameID},
	{name: "res/foreign", run: lateRelease},
	{name: "part/stale-read", run: staleRead},
	{name: "amb/client", run: clientError},

	{name: "bad/garbage", raw: true, run: garbage},
	{name: "bad/ttl", raw: true, run: badTTL},
	{name: "bad/newer", raw: true, run: newerSchema},
	{name: "rec/kept", run: extensionsKept},
	{name: "rec/term", run: extensionsDropped},
	{name: "rec/critical", run: extensionsCritical},
	{name: "rec/bounds", raw: true, run: extensionBounds},
	{name: "bad/schema", run: wrongSetup},

	{name: "watch/subscribe", run: watchSubscribe},
	{name: "watch/many", run: watchMany},
	{name: "watch/end", run: watchEnd},

	{name: "presence/deposed", raw: true, run: presenceDeposed},
	{name: "presence/end", run: presenceEnd},

	{name: "batch/each", run: batchEach},
	{name: "batch/race", run: batchRace},
	{name: "batch/mixed", run: batchMixed},
	{name: "batch/creations", run: batchCreations},
	{name: "batch/presence", raw: true, run: batchPresence},
	{name: "batch/cancel", run: batchCancel},

	{name: "load/each", run: loadEach},
	{name: "load/cancel", run: loadCancel},

	{name: "list/names", run: listNames},

	{name: "auth/reader", run: readerOnly},

	{name: "close/idempotent", run: closeTwice},
}
