package conformance

// electorCases run the elector over the backend. In all of them the referee of the
// election checks guarantees 1 and 5: see election.
var electorCases = []testCase{
	{name: "mx/two-valid", run: twoValid},
	{name: "mx/same-id", run: twins},
	{name: "mx/vanished", raw: true, run: vanished},
	{name: "mx/rollback", raw: true, run: rollback},
	{name: "exp/record-ttl", run: recordTTL},

	{name: "rec/edited", run: edited},
	{name: "rec/request", run: request},
	{name: "rec/critical", run: critical},

	{name: "tok/strict", run: strict},
	{name: "tok/renew-stable", run: renewStable},
	{name: "tok/after-delete", raw: true, run: afterDelete},
	{name: "tok/restore", raw: true, run: restore},
	{name: "tok/max", run: maxToken},
	{name: "tok/fence", run: fenced},

	{name: "ren/conflict", run: renewConflict},
	{name: "ren/transient", run: renewTransient},
	{name: "ren/one-hang", run: renewOneHang},
	{name: "ren/hung", run: renewHung},
	{name: "ren/resurrect", run: resurrect},
	{name: "ren/stall", run: stall},
	{name: "ren/unhealthy", run: unhealthy},

	{name: "res/order", run: resignOrder},
	{name: "res/run-waits", run: runWaits},
	{name: "res/handover", run: handover},
	{name: "res/fail-retry", run: failRetry},
	{name: "res/foreign", run: foreign},
	{name: "res/overrun", run: overrun},
	{name: "res/deposed", raw: true, run: deposed},
	{name: "run/deposed", raw: true, run: runDeposed},

	{name: "move/requested", run: requested},
	{name: "move/stale", run: staleRequest},
	{name: "move/twice", run: requestedTwice},
	{name: "move/dead", run: deadRequested},
	{name: "move/old", run: oldVersion},
	{name: "move/successor", run: successors},
	{name: "move/priority", run: priorities},
	{name: "move/volunteer", run: volunteers},
	{name: "move/history", run: historyKept},
	{name: "move/paused", run: paused},

	{name: "run/again", run: runAgain},
	{name: "run/unhealthy", run: runUnhealthy},
	{name: "run/panic", run: runPanic},
	{name: "try/held", run: held},

	{name: "obs/monotonic", run: monotonic},
	{name: "obs/latest", run: latest},
	{name: "obs/slow", run: slowObserver},
	{name: "obs/resume", run: resume},

	{name: "amb/acquire", run: ambiguousAcquire},
	{name: "amb/renew", run: ambiguousRenew},
	{name: "amb/conflict-is-mine", run: conflictIsMine},
	{name: "amb/two-unresolved", run: twoUnresolved},
	{name: "amb/release", run: ambiguousRelease},
	{name: "amb/delayed-write", run: delayedWrite},

	{name: "batch/shared", run: sharedRenewals},
	{name: "batch/ambiguous", run: ambiguousBatch},
	{name: "batch/one-lost", run: oneLost},
	{name: "batch/closed", run: closedBatch},

	{name: "part/holder", run: partHolder},
	{name: "part/one-way", run: partOneWay},
	{name: "auth/denied", run: denied},
	{name: "bad/ttl", raw: true, run: electorBadTTL},

	{name: "ctx/cancel", run: cancelled},
	{name: "leak/rounds", run: roundsLeak},
	{name: "close/idempotent", run: closeIdempotent},
	{name: "cb/block", run: blockingCallbacks},
	{name: "misuse/concurrent", run: concurrent},

	{name: "many/candidates", run: manyCandidates},
	{name: "many/elections", run: manyElections},
	{name: "many/names", run: manyNames},
}
