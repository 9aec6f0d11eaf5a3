package main

// The bounds of election.pml. T is the TTL in ticks, TOKENS the number of acquisitions, LATE the
// number of creations that were given up and are on their way at a time. There
// are two candidates, and three in large-three. No search of CI has everything in it; those of -large have.
const (
	small    = "N=2 T=2 TOKENS=2 LATE=0 NO_DRAIN NO_REQUEST"                // with workers and the resource
	election = "N=2 T=2 TOKENS=3 LATE=0 NO_DRAIN NO_REQUEST NO_WORK"        // without them
	life     = "N=2 T=2 TOKENS=3 LATE=0 NO_WORK"                            // every end of a lease, and requests
	requests = "N=2 T=2 TOKENS=3 LATE=0 NO_DRAIN NO_WORK"                   // requests alone
	creation = "N=2 T=2 TOKENS=3 LATE=1 NO_DRAIN NO_REQUEST NO_WORK"        // late creations
	unseen   = "N=2 T=1 TOKENS=3 LATE=1 NO_DRAIN NO_REQUEST NO_WORK UNSEEN" // and acquisitions that some miss
	calm     = life + " CALM"
)

var elections = []check{
	{"good", small, holds, "two acquisitions, workers, a fenced resource", false},
	{"good-life", life, holds, "three acquisitions, every end of a lease, requests", false},
	{"good-creation", creation, holds, "a creation may come late, after others have led", false},
	{"good-unseen", unseen, holds, "and others may have led unseen", false},
	{"leader-returns", calm + " BOUND=3", holds, "after any troubles a candidate leads within T+1 calm ticks", false},

	// One place of the model is changed in each.
	{"NO_FENCE", small + " NO_FENCE", "writes_in_order", "the resource takes every write", false},
	{"H_FROM_RESPONSE", election + " H_FROM_RESPONSE", "one_valid_lease", "the lease counts from the answer, not from before the request", false},
	{"CLOCK_BEFORE_READ", election + " CLOCK_BEFORE_READ", "one_valid_lease", "the challenger counts from before its read", false},
	{"RELEASE_BEFORE_LOSS", election + " RELEASE_BEFORE_LOSS", "written_after_loss", "the release is written while the lease is valid", false},
	{"TOKEN_RESET", election + " TOKEN_RESET", "token_grew", "a release starts the tokens again", false},
	{"AMBIGUOUS_SUCCESS", election + " AMBIGUOUS_SUCCESS", "one_valid_lease", "a renewal without an answer counts as a success", false},
	{"VANISHED_VACANT", election + " VANISHED_VACANT", "one_valid_lease", "a record that vanished is free at once", false},
	{"SHORT_WAIT", election + " SHORT_WAIT", "one_valid_lease", "the challenger waits a tick less: C is as short as it can be", false},
	{"RESURRECT", election + " RESURRECT", "lost_for_good", "a late answer brings back a lease that was over", false},
	{"MOVES_BACK", life + " MOVES_BACK", "lost_for_good", "a late answer makes a lost lease a held one", false},
	{"BLIND_RELEASE", election + " BLIND_RELEASE", "token_grew", "a release does not compare, and hits a successor", false},
	{"TOLD_AT_WORK", life + " TOLD_AT_WORK", "written_after_work", "the release is written while the worker runs", false},
	{"TOLD_AFTER_PANIC", life + " TOLD_AFTER_PANIC", "written_after_work", "the release is written after a panic", false},
	{"TOLD_TWICE", life + " TOLD_TWICE", "written_once", "a release that was written is written again", false},
	{"REQUEST_EXTENDS", requests + " REQUEST_EXTENDS", "one_valid_lease", "a record with a request in it counts as renewed", false},
	{"REQUEST_RESTARTS", requests + " CALM BOUND=3 REQUEST_RESTARTS", "leader_is_back", "a request makes challengers wait anew", false},
	{"CONTESTED_BELIEVED", creation + " CONTESTED_BELIEVED", "one_valid_lease", "an acquisition is believed although another one was seen since", false},
	{"DOUBT_UNLED", unseen + " DOUBT_UNLED", "one_valid_lease", "a creation in doubt that never led is taken at once", false},
	{"DOUBT_LED", unseen + " DOUBT_LED", "one_valid_lease", "a lost lease is taken at once although its creation is in doubt", false},
	{"TOLD_LATE", life + " TOLD_LATE", "sent_in_time", "a release is sent after H", false},
	{"DOUBT_REPEATED", unseen + " DOUBT_REPEATED", "one_valid_lease", "a release is repeated on any own state although the creation is in doubt", false},
	{"leader-too-soon", election + " CALM BOUND=2", "leader_is_back", "a leader within T ticks is too much to ask", false},

	// Each must happen in the good model: the search must stop there.
	{"reach-TAKEOVER", election + " REACH=TAKEOVER", "never_happens", "a candidate takes over after another one's TTL", false},
	{"reach-READ_BACK", election + " REACH=READ_BACK", "never_happens", "a lost acknowledgement is read back, and extends the lease", false},
	{"reach-ACQUIRED_BACK", election + " REACH=ACQUIRED_BACK", "never_happens", "an acquisition is found by reading back", false},
	{"reach-LATE_APPLIED", election + " REACH=LATE_APPLIED", "never_happens", "a write is applied after its sender gave it up", false},
	{"reach-LOST_HELD", election + " REACH=LOST_HELD", "never_happens", "the record vanishes while a lease is valid", false},
	{"reach-AFTER_VANISH", election + " REACH=AFTER_VANISH", "never_happens", "a candidate leads again after that", false},
	{"reach-PAUSED", small + " REACH=PAUSED", "never_happens", "a worker paused past H writes, and does not know", false},
	{"reach-REFUSAL", small + " REACH=REFUSAL", "never_happens", "the resource refuses a stale write", false},
	{"reach-TAKEN_AT_ONCE", election + " REACH=TAKEN_AT_ONCE", "never_happens", "a candidate takes at once what is over", false},
	{"reach-HANDED_OVER", election + " REACH=HANDED_OVER", "never_happens", "a candidate takes over after a release", false},
	{"reach-RETOLD", election + " REACH=RETOLD", "never_happens", "a release is repeated after a read-back", false},
	{"reach-TOO_LATE", life + " REACH=TOO_LATE", "never_happens", "a release is not sent, because H is over", false},
	{"reach-DRAINED", life + " REACH=DRAINED", "never_happens", "a worker drains, and then the release is written", false},
	{"reach-TOLD_OVERRUN", life + " REACH=TOLD_OVERRUN", "never_happens", "a lease whose worker took too long to stop is released", false},
	{"reach-TOLD_DEPOSED", life + " REACH=TOLD_DEPOSED", "never_happens", "a deposed lease is released", false},
	{"reach-REQUESTED", life + " REACH=REQUESTED", "never_happens", "a renewal meets a request, and its candidate goes on leading", false},
	{"reach-DOUBT_LEADS", creation + " REACH=DOUBT_LEADS", "never_happens", "a candidate leads although its creation is in doubt", false},
	{"reach-NEVER_TOLD", life + " REACH=NEVER_TOLD", "never_happens", "a lost lease is not released", false},
	{"reach-CREATED_LATE", creation + " REACH=CREATED_LATE", "never_happens", "its creation comes late, while another lease is valid", false},
	{"reach-DISBELIEVED", creation + " REACH=DISBELIEVED", "never_happens", "a candidate does not believe its acquisition, which the store acknowledges", false},

	{"large-three", "N=3 T=1 TOKENS=2 LATE=0 NO_DRAIN NO_REQUEST NO_WORK", holds, "three candidates", true},
	{"large-work", "T=2 TOKENS=2 LATE=1", holds, "workers and everything else", true},
	{"large-tokens", "T=2 TOKENS=3 LATE=0 NO_DRAIN NO_REQUEST", holds, "three acquisitions, workers", true},
	{"large-time", "T=3 TOKENS=3 LATE=0 NO_WORK", holds, "a longer TTL, every end of a lease, requests", true},
	{"large-creation", "T=2 TOKENS=3 LATE=2 NO_WORK", holds, "two late creations, every end of a lease, requests", true},
	{"large-unseen", "T=2 TOKENS=3 LATE=1 NO_REQUEST NO_WORK UNSEEN", holds, "a late creation, acquisitions that some miss, every end of a lease", true},
	{"large-returns", "T=3 TOKENS=3 LATE=0 NO_WORK CALM BOUND=4", holds, "a leader is back, with a longer TTL", true},
	{"large-returns-late", "T=2 TOKENS=3 LATE=1 NO_WORK CALM BOUND=3", holds, "a leader is back, with late creations", true},
}
