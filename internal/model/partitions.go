package main

// The bounds of partition.pml. T is H and C of a seat in ticks, A the audit bound,
// TOKENS the highest token, INCARNATIONS those of each seat, EDITS those of the seats'
// records by hand, DELETIONS those of the partition's record. No search of CI has all of
// them: seats are lost and edited, or the partition's record is, or the plan is founding.
const (
	seats    = "FOUNDED T=2 A=1 TOKENS=3 DELETIONS=0 INCARNATIONS=1 EDITS=1" // a seat is edited
	sittings = "FOUNDED T=2 A=1 TOKENS=3 DELETIONS=0 INCARNATIONS=2 EDITS=1" // and taken again
	records  = "FOUNDED T=2 A=2 TOKENS=3 INCARNATIONS=1 EDITS=0"             // the record is deleted and put back
	again    = "FOUNDED T=1 A=2 TOKENS=3 INCARNATIONS=2 EDITS=0"             // and seats are taken again
	founding = "T=1 A=2 TOKENS=2 INCARNATIONS=1 EDITS=1"                     // from a founding plan
	creating = "T=1 A=2 TOKENS=3 INCARNATIONS=1 EDITS=0"                     // creations meet deletions
)

var partitions = []check{
	{"good-seats", sittings, holds, "two incarnations of each seat, one edit of a seat by hand", false},
	{"good-records", records, holds, "the record is deleted by hand, and put back", false},
	{"good-creating", creating, holds, "a creation is applied late, after another record was deleted by hand", false},
	{"good-founding", founding, holds, "from a founding plan, with an edit of a seat and of the record", false},

	{"OTHER_IS_OVER", seats + " NO_TOKENS OTHER_IS_OVER", "one_valid_owner", "another incarnation in the seat shows that this one is over", false},
	{"ABSENT_AT_ONCE", seats + " NO_TOKENS ABSENT_AT_ONCE", "one_valid_owner", "an incarnation that its seat does not show is over at once", false},
	{"OLD_READ", seats + " NO_TOKENS OLD_READ", "one_valid_owner", "the absence counts from a read that was sent before the holder was seen", false},
	{"UNCONFIRMED", "FOUNDED T=2 A=1 TOKENS=3 DELETIONS=0 INCARNATIONS=1 EDITS=2 NO_TOKENS UNCONFIRMED", "one_valid_owner", "no read at the end of the absence confirms it", false},
	{"NO_INCARNATION", sittings + " NO_TOKENS NO_INCARNATION", "one_valid_owner", "only the number of the seat counts", false},
	{"SEAT_OVERWRITTEN", seats + " NO_TOKENS SEAT_OVERWRITTEN", "one_valid_owner", "a seat is replaced without a comparison", false},
	{"DRAIN_NOT_AWAITED", seats + " DRAIN_NOT_AWAITED", "written_after_work", "the release is written when the worker is told to stop", false},
	{"LATE_CLOCK", records + " NO_TOKENS LATE_CLOCK", "one_valid_owner", "the lease counts from the answer, not from before the request", false},
	{"VANISHED_FREE", records + " NO_TOKENS VANISHED_FREE", "one_valid_owner", "a missing record is free at once", false},
	{"LOWER_TRUSTED", records + " NO_TOKENS LOWER_TRUSTED", "one_valid_owner", "so is one that was put back, with a lower token", false},
	{"NO_AUDIT", records + " NO_TOKENS NO_AUDIT", "one_valid_owner", "the owner never reads its record back", false},
	{"CREATION_TRUSTED", creating + " NO_TOKENS CREATION_TRUSTED", "one_valid_owner", "a record that a late creation may have made counts as any other", false},
	{"FRESH_WAITED_OUT", records + " NO_TOKENS FRESH_WAITED_OUT", "one_valid_owner", "an unconfirmed record is waited out with the missing one before it", false},
	{"READ_CONFIRMS", records + " NO_TOKENS READ_CONFIRMS", "one_valid_owner", "a read of an unconfirmed record confirms its owner", false},
	{"NO_FLOOR", records + " NO_FLOOR", "token_grew", "the token of a new record takes no notice of the time of day", false},

	{"reach-TAKEN_OVER", seats + " REACH=TAKEN_OVER", "never_happens", "a partition is taken whose incarnation k_over names", false},
	{"reach-TAKEN_RELEASED", seats + " REACH=TAKEN_RELEASED", "never_happens", "one whose seat was released", false},
	{"reach-TAKEN_ABSENT", seats + " REACH=TAKEN_ABSENT", "never_happens", "one whose incarnation its seat has not shown for C", false},
	{"reach-TAKEN_OWN", records + " REACH=TAKEN_OWN", "never_happens", "one that is held through the own incarnation, without a lease", false},
	{"reach-TAKEN_MISSING", records + " REACH=TAKEN_MISSING", "never_happens", "a missing record is taken after A", false},
	{"reach-TAKEN_LOWER", records + " REACH=TAKEN_LOWER", "never_happens", "one that was put back, with a lower token, is taken after A", false},
	{"reach-PASSED_ON", seats + " REACH=PASSED_ON", "never_happens", "a worker drains, and then the other member takes the partition", false},
	{"reach-REWRITTEN", records + " REACH=REWRITTEN", "never_happens", "an owner writes its deleted record again", false},
	{"reach-TAKEN_FRESH", records + " REACH=TAKEN_FRESH", "never_happens", "an unconfirmed record is taken after A, whatever its holder does", false},
	{"reach-APPLIED_LATE", seats + " REACH=APPLIED_LATE", "never_happens", "an acquisition is applied whose sender has lost its seat", false},
	{"reach-FOUND", seats + " REACH=FOUND", "never_happens", "an acquisition is found by reading back", false},
	{"reach-CONTRADICTED", records + " REACH=CONTRADICTED", "never_happens", "an owner with a valid lease finds its record changed", false},
	{"reach-TIMED_OUT", seats + " REACH=TIMED_OUT", "never_happens", "a release is written after the lease of a worker that has not returned was ended", false},
	{"reach-RELEASED_AGAIN", records + " REACH=RELEASED_AGAIN", "never_happens", "a record that names the own incarnation without a lease is released", false},

	{"large-edits", "FOUNDED T=2 A=1 TOKENS=3 DELETIONS=0 INCARNATIONS=2 EDITS=2", holds, "two edits of the seats by hand", true},
	{"large-again", again, holds, "the record is deleted and put back, and each seat has two incarnations", true},
	{"large-audit", "FOUNDED T=2 A=3 TOKENS=3 INCARNATIONS=1 EDITS=0", holds, "a longer audit bound", true},
	{"large-founding", "T=1 A=2 TOKENS=3 INCARNATIONS=1 EDITS=1", holds, "from a founding plan, three acquisitions", true},
	{"large-owners", "FOUNDED T=2 A=2 TOKENS=4 INCARNATIONS=1 EDITS=0", holds, "three acquisitions, and the record is deleted and put back", true},
}
