package main

// The bounds. T is the TTL in ticks, TOKENS the number of acquisitions. There are
// two candidates: with three the search did not come to an end in four minutes.
const (
	small    = "N=2 T=2 TOKENS=2"         // with workers and the resource
	election = "N=2 T=2 TOKENS=3 NO_WORK" // without them
	calm     = election + " CALM"
)

var checks = []check{
	{"good", small, holds, "two acquisitions, workers, a fenced resource", false},
	{"good-election", election, holds, "three acquisitions, no workers", false},
	{"leader-returns", calm + " BOUND=3", holds, "after any troubles somebody leads within T+1 calm ticks", false},

	// One place of the model is changed in each.
	{"NO_FENCE", small + " NO_FENCE", "writes_in_order", "the resource takes every write", false},
	{"H_FROM_RESPONSE", election + " H_FROM_RESPONSE", "one_valid_lease", "the lease counts from the answer, not from before the request", false},
	{"CLOCK_BEFORE_READ", election + " CLOCK_BEFORE_READ", "one_valid_lease", "the challenger counts from before its read", false},
	{"RELEASE_BEFORE_LOSS", election + " RELEASE_BEFORE_LOSS", "told_after_loss", "the store is told of a release while the lease is valid", false},
	{"TOKEN_RESET", election + " TOKEN_RESET", "token_grew", "a release starts the tokens again", false},
	{"AMBIGUOUS_SUCCESS", election + " AMBIGUOUS_SUCCESS", "one_valid_lease", "a renewal without an answer counts as a success", false},
	{"VANISHED_VACANT", election + " VANISHED_VACANT", "one_valid_lease", "a record that vanished is free at once", false},
	{"SHORT_WAIT", election + " SHORT_WAIT", "one_valid_lease", "the challenger waits a tick less: C is as short as it can be", false},
	{"RESURRECT", election + " RESURRECT", "lost_for_good", "a late answer brings back a lease that was over", false},
	{"BLIND_RELEASE", election + " BLIND_RELEASE", "token_grew", "a release does not compare, and hits a successor", false},
	{"leader-too-soon", calm + " BOUND=2", "leader_is_back", "a leader within T ticks is too much to ask", false},

	// Each must happen in the good model: the search must stop there.
	{"reach-TAKEOVER", small + " REACH=TAKEOVER", "never_happens", "a candidate takes over after another one's TTL", false},
	{"reach-READ_BACK", small + " REACH=READ_BACK", "never_happens", "a lost acknowledgement is read back, and extends the lease", false},
	{"reach-ACQUIRED_BACK", small + " REACH=ACQUIRED_BACK", "never_happens", "an acquisition is found by reading back", false},
	{"reach-LATE_APPLIED", small + " REACH=LATE_APPLIED", "never_happens", "a write is applied after its sender gave it up", false},
	{"reach-LOST_HELD", small + " REACH=LOST_HELD", "never_happens", "the record vanishes while a lease is valid", false},
	{"reach-AFTER_VANISH", small + " REACH=AFTER_VANISH", "never_happens", "somebody leads again after that", false},
	{"reach-PAUSED", small + " REACH=PAUSED", "never_happens", "a worker paused past H writes, and does not know", false},
	{"reach-REFUSAL", small + " REACH=REFUSAL", "never_happens", "the resource refuses a stale write", false},
	{"reach-RETAKEN", small + " REACH=RETAKEN", "never_happens", "a candidate retakes at once what it abandoned", false},
	{"reach-HANDED_OVER", small + " REACH=HANDED_OVER", "never_happens", "a candidate takes over after a release", false},
	{"reach-RETOLD", small + " REACH=RETOLD", "never_happens", "a release is told a second time", false},

	// What is not promised, and would be wrong to promise.
	{"LATE_CREATE", election + " LATE_CREATE", "token_grew", "a creation is applied late, after a record came and vanished", false},

	{"large-tokens", "T=2 TOKENS=3", holds, "three acquisitions, workers", true},
	{"large-time", "T=3 TOKENS=2", holds, "a longer TTL, workers", true},
	{"large-election", "T=3 TOKENS=3 NO_WORK", holds, "a longer TTL, three acquisitions", true},
	{"large-returns", "T=3 TOKENS=3 NO_WORK CALM BOUND=4", holds, "a leader is back, with a longer TTL", true},
}
