/*
 * The partitions of a group as a model for spin: who may own one of them. README.md
 * beside this file maps each step to the code, and says what is left out.
 * docs/design-partitions.md has the rules, by number.
 *
 * There are two members and one partition. Member 0 sits in seat 0, and member 1 in
 * seat 1. Other processes may take a seat that is free, depose a member that does not
 * renew, and then leave again. No process crashes in the model: one that does not take
 * its next step for long, and then gives up its seat, does the same and worse.
 *
 * Time. One tick is the smallest time that is told apart, and every timer counts down.
 * H and C are both T ticks, Hold(A) and Challenge(A) both A ticks: see election.pml.
 *
 * Seats. A seat is an election, and election.pml is about those. Here it is taken as
 * proven: a lease on a seat is valid until T after the last renewal, and another
 * process replaces the record only when it has not changed for T. So a renewal is one
 * step, at the moment when the store applies it: one whose answer takes time, or is
 * lost, makes the lease shorter, and the wait for it not.
 *
 * Incarnations of a seat are numbered from 1. Each has one bit in k_over.
 *
 * Reads are one step: an answer that comes late leaves less of what it allows.
 *
 * Writes of the partition's record are sent, applied and answered, and each takes any
 * time. The store may apply one at any time after it was sent, or never: also after
 * its sender has read back, has given it up, or has lost its seat. The answer may be
 * lost: then the sender reads back, and repeats the same write while the state stands
 * that it compares with. Each member has one such write; if an earlier one is still
 * on its way, the next one is applied when it is sent. A write without an answer in
 * time is in doubt.
 *
 * Versions. A counter would make the states endless. It is enough to know of each
 * member whether the state that it has seen stands (stands). A change of the record
 * drops all writes that compare with an earlier state. Only a creation compares with
 * one that comes back: no record. So it is never dropped. What it writes is unconfirmed
 * until its writer, who has got the answer, writes once more.
 *
 * The plan says anything at any time, so a member takes the partition and gives it up
 * whenever the other rules let it. It is founding at first, until it is not.
 *
 * A member has a slot for the partition:
 *
 *	wanted -> held -> draining -> ended -> wanted
 *
 * A lease is valid in held and draining, for as long as both of its timers run: that of
 * the seat, and that of the audit.
 *
 * Each step is one d_step. What it says is shown when spin replays a trail.
 */

#ifndef T
#define T 1              /* H and C of a seat, in ticks */
#endif
#ifndef A
#define A 2              /* the audit bound, in ticks */
#endif
#ifndef TOKENS
#define TOKENS 3         /* the search ends at this token */
#endif
#ifndef INCARNATIONS
#define INCARNATIONS 2   /* of each seat */
#endif
#ifndef EDITS
#define EDITS 1          /* of the seats' records by hand */
#endif
#ifndef DELETIONS
#define DELETIONS 1      /* of the partition's record by hand; it is put back as often */
#endif

#ifdef FOUNDED           /* the plan is settled from the start, and the record there: vacant, with token 1 */
#define FIRST 1
#else
#define FIRST 0
#endif

/* The mutants. Each changes one of these definitions. */

#ifdef OTHER_IS_OVER     /* another incarnation in the seat shows that this one is over */
#define SHOWN_OVER      (shows[s] != 0 && shows[s] != holder)
#else
#define SHOWN_OVER      false
#endif

#ifdef ABSENT_AT_ONCE    /* an incarnation that its seat does not show is over at once */
#define ABSENCE         0
#else
#define ABSENCE         T
#endif

#ifdef OLD_READ          /* the absence counts from a read that was sent before the holder was seen */
#define SHOWN           (absent[c] && shows[s] == holder)
#else
#define SHOWN           (shows[s] == holder)
#endif

#ifdef UNCONFIRMED       /* no read confirms at the end of the absence that it lasts */
#define ABSENT_LONG     (absent[c] && wait[c] == 0)
#else
#define ABSENT_LONG     false
#endif

#ifdef NO_INCARNATION    /* only the number of the seat counts */
#define NAMED_OVER      (over[s] != 0)
#define VACANT_OVER     vacated[s]
#else
#define NAMED_OVER      ((over[s] >> holder) & 1)
#define VACANT_OVER     (vacated[s] && shows[s] == holder)
#endif

#ifdef DRAIN_NOT_AWAITED /* the release is written when the worker is told to stop */
#define MAY_VACATE      (slot[c] == ended || slot[c] == draining)
#else
#define MAY_VACATE      (slot[c] == ended)
#endif

#ifdef LATE_CLOCK        /* the lease counts from the answer to the write */
#define TRUST           A
#else
#define TRUST           left[c]
#endif

#ifdef VANISHED_FREE     /* a missing record is free at once */
#define FREE_IF_MISSING true
#else
#define FREE_IF_MISSING (founding && highest[c] == 0 || LONG_GONE)
#endif

#ifdef LOWER_TRUSTED     /* so is one that was put back, with a lower token than one seen */
#define GOOD(who)       (exists && !fresh)
#else
#define GOOD(who)       (exists && !fresh && token >= highest[who])
#endif

#ifdef CREATION_TRUSTED  /* what was written where there was no record counts as any other */
#define IS_FRESH        false
#else
#define IS_FRESH        true
#endif

#ifdef FRESH_WAITED_OUT  /* an unconfirmed record is waited out with the missing one before it */
#define RESTARTS        false
#else
#define RESTARTS        fresh
#endif

#ifdef READ_CONFIRMS     /* a read of an unconfirmed record confirms its owner */
#define FRESH_AUDITED   true
#else
#define FRESH_AUDITED   false
#endif


#ifdef NO_AUDIT          /* the owner never reads its record back */
#define AUDITED(who)    true
#else
#define AUDITED(who)    (audit[who] > 0)
#endif

#ifdef SEAT_OVERWRITTEN  /* a seat is replaced without a comparison: a renewal meanwhile does not count */
#define RENEWED         quiet[c]
#else
#define RENEWED         T
#endif

#ifdef NO_FLOOR          /* the token of a new record takes no notice of the time of day */
#define FLOOR           (highest[c] + 1)
#else
#define FLOOR           (newest + 1)
#endif

/*
 * What the protocol does not promise. A person deletes the record of another member while
 * an acquisition that creates it is on its way, and that one is answered in time.
 */
#define CREATES(who)    (write[who] == take && creates[who] && !doubt[who])
#ifdef NO_TOKENS         /* tokens are not checked, so that a search goes on until there are two owners */
#define TOKEN_IS_NEW    true
#else
#define TOKEN_IS_NEW    (mine[c] > led)
#endif

/*
 * What must be seen to happen. REACH names one of them; the search then has to
 * stop there, and the trail is an example of it.
 */
#define TAKEN_OVER     1 /* a partition is taken whose incarnation its seat's k_over names */
#define TAKEN_RELEASED 2 /* ... whose seat is vacant */
#define TAKEN_ABSENT   3 /* ... whose incarnation its seat has not shown for C */
#define TAKEN_OWN      4 /* ... through whose own incarnation it was held, without a lease */
#define TAKEN_MISSING  5 /* a missing record is taken after A */
#define TAKEN_LOWER    6 /* one that was put back, with a lower token, is taken after A */
#define PASSED_ON      7 /* a worker drains, and then the other member takes the partition */
#define REWRITTEN      8 /* an owner writes its deleted record again */
#define TAKEN_FRESH    9 /* one that is unconfirmed is taken after A, although its holder may not be over */
#define APPLIED_LATE  10 /* the store applies an acquisition whose sender has lost its seat */
#define FOUND         11 /* an acquisition is found by reading back */
#define CONTRADICTED  12 /* an owner finds its record changed, and its lease was valid */
#define TIMED_OUT     13 /* a release is written although the worker has not returned: its lease was ended */
#define RELEASED_AGAIN 14 /* a record that names the own incarnation without a lease is released */

#ifdef REACH
#define SEEN(what, condition) never_happens = !(what == REACH && (condition)); assert(never_happens)
#else
#define SEEN(what, condition) skip
#endif

/*
 * What is promised. Each has a name, and spin prints it when it does not hold.
 */
hidden byte one_valid_owner;  /* no two members have a valid lease on the partition */
hidden byte token_grew;       /* each lease has a higher token than all before */
hidden byte written_after_work; /* a release is written after the worker has returned, or the lease is over */
hidden byte never_happens;    /* what REACH names; must fail */

mtype = {
	/* a slot */
	wanted, held, draining, ended,
	/* a write: it acquires, writes a deleted record again, confirms it, or makes it vacant */
	none, take, rewrite, confirm, vacate
};

#define STRANGER 7       /* an incarnation of another process */

/* The seats' records. */
byte shows[2] = 1;         /* the incarnation; 0 if there is no record */
bool vacated[2];         /* no process holds it */
byte over[2];            /* k_over */
byte quiet[2] = T;         /* what is left of C since it changed */
byte edits;              /* by hand */

/* The partition's record. What it was before it was deleted stays in the fields. */
bool exists = FIRST, vacant = FIRST;
bool fresh;              /* it was written where there was none, and is not confirmed */
bit  seat;               /* the seat */
byte holder;             /* and the incarnation through which it is held */
byte token = FIRST;
byte deleted, put_back;  /* by hand */

bool founding = !FIRST;   /* the plan's */

/* Each member. */
bool  sits[2] = true;         /* it has a lease on its seat, or has not noticed its end */
byte  begun[2] = 1;        /* its incarnation, or the last one */
byte  lease[2] = T;        /* what is left of H of its seat */
mtype slot[2] = wanted;
byte  mine[2];           /* the token of its acquisition */
byte  audit[2];          /* what is left of Hold(A) */
bool  running[2];        /* the worker has not returned */
bool  stands[2];         /* the state of the record that it saw last is still there */
byte  highest[2] = FIRST; /* the highest token seen */
bool  gone[2];           /* the record was seen missing, or with a lower token, and not otherwise since */
byte  distrust[2];       /* what is left of Challenge(A) since then */
bool  absent[2];         /* the seat of the holder has not shown it since a read */
byte  wait[2];           /* what is left of C since then */
bool  is_over[2];        /* the holder that it saw is over */

/* Its write under way. */
mtype write[2] = none;
bool  creates[2];        /* it compares with "no record" */
bool  applied[2];        /* the answer is on its way */
bool  doubt[2];          /* and will not come in time */
byte  left[2];           /* what is left of Hold(A) since it was sent */

/* A write that the store has not got. */
typedef Late { bool on, given_up, creates; mtype action; byte holder, token };
Late late[2];

/* For the checks alone. */
byte newest = FIRST;         /* the highest token in the record so far */
byte led = FIRST;            /* the highest token of a lease so far */
bool drained;            /* the partition is vacant because a worker has drained */
hidden byte i, awaited;
hidden byte s;

#define c _pid           /* a member's number */

#define VALID(who) ((slot[who] == held || slot[who] == draining) && AUDITED(who) && lease[who] > 0)
#define NAMES_OWN  (exists && !vacant && seat == c && holder == begun[c])
#define IS_MINE    (NAMES_OWN && token == mine[c])
#define LONG_GONE  (gone[c] && distrust[c] == 0)
#define MAY_TAKE (vacant || NAMES_OWN || is_over[c] || ABSENT_LONG)
#define FREE (!exists -> FREE_IF_MISSING : (fresh -> LONG_GONE || founding && MAY_TAKE : (!gone[c] || LONG_GONE) && MAY_TAKE))
#define TOKEN (exists && !fresh -> (highest[c] > token -> highest[c] : token) + 1 : FLOOR)
/* An own creation without an answer is believed while the plan is founding. */
#define MAY_BELIEVE (write[c] != take || !creates[c] || founding)
/* The plan is settled once each member has announced that it is whole. */
#define WHOLE(who) (!sits[who] || write[who] != take || !creates[who])
/* The members are alike: let number 0 be the first who acquires. */
#define IN_TURN (token > FIRST || c == 0)
#define MAX(a, b) (a > b -> a : b)

inline count_owners() {
	one_valid_owner = !(VALID(0) && VALID(1));
	assert(one_valid_owner)
}

inline drop_late(who) {
	late[who].on = false; late[who].given_up = false; late[who].creates = false;
	late[who].action = none; late[who].holder = 0; late[who].token = 0
}

/* A process takes a seat's record, and notes whom it replaces. */
inline replace(number, by) {
	if
	:: shows[number] == 0 -> over[number] = 0
	:: shows[number] != 0 && shows[number] != STRANGER -> over[number] = over[number] | (1 << shows[number])
	:: else
	fi;
	shows[number] = by; vacated[number] = (by == STRANGER); quiet[number] = (by == STRANGER -> 0 : T)
}

/* The record is another now. A member that had seen it go sees that it is back: its reads are no further apart. */
inline changed() {
	for (i : 0 .. 1) {
		stands[i] = false; absent[i] = false; wait[i] = 0; is_over[i] = false;
		if :: GOOD(i) || RESTARTS -> gone[i] = false; distrust[i] = 0 :: else fi;
		if :: late[i].on && !late[i].creates -> drop_late(i) :: else fi
	}
}

/* The store applies a write. */
inline apply(what, is_new, by, with) {
	if
	:: what == take ->
		SEEN(TAKEN_OVER, exists && !vacant && !(seat == c && sits[c] && holder == begun[c]) && ((over[seat] >> holder) & 1));
		SEEN(TAKEN_RELEASED, exists && !vacant && vacated[seat] && shows[seat] == holder);
		SEEN(TAKEN_ABSENT, exists && !vacant && seat != c && shows[seat] != holder && !((over[seat] >> holder) & 1));
		SEEN(TAKEN_OWN, exists && !vacant && seat == c && holder == by);
		SEEN(TAKEN_MISSING, !exists && newest > 0);
		SEEN(TAKEN_LOWER, exists && !fresh && token < newest);
		SEEN(TAKEN_FRESH, exists && fresh && seat != c && !founding);
		SEEN(PASSED_ON, drained && seat != c);
		newest = MAX(newest, with)
	:: what == rewrite -> SEEN(REWRITTEN, VALID(c))
	:: what == confirm
	:: what == vacate ->
		written_after_work = !(running[c] && VALID(c) && mine[c] == with);
		assert(written_after_work);
		SEEN(TIMED_OUT, running[c] && mine[c] == with)
	fi;
	drained = (what == vacate && slot[c] == ended && !running[c]);
	exists = true; vacant = (what == vacate); fresh = (is_new && IS_FRESH);
	seat = c; holder = by; token = with;
	changed()
}

/* A member sends a write. */
inline send(what, is_new) {
	write[c] = what; creates[c] = is_new; applied[c] = false;
	left[c] = (what == vacate -> 0 : A);
	if
	:: !late[c].on && (is_new || stands[c]) ->
		late[c].on = true; late[c].creates = is_new; late[c].action = what;
		late[c].holder = begun[c]; late[c].token = mine[c]
	:: late[c].on && late[c].given_up && (is_new && !exists || !is_new && stands[c]) ->
		apply(what, is_new, begun[c], mine[c]); applied[c] = true; stands[c] = true
	:: else
	fi
}

/* A member waits for no answer any more. */
inline settled() {
	write[c] = none; creates[c] = false; applied[c] = false; doubt[c] = false; left[c] = 0;
	if :: late[c].on -> late[c].given_up = true :: else fi
}

inline forget() { slot[c] = wanted; mine[c] = 0; audit[c] = 0; running[c] = false }

/* The incarnation is over: it owns nothing, and doubts nothing. */
inline rise() {
	settled(); forget();
	sits[c] = false; lease[c] = 0; stands[c] = false; absent[c] = false; wait[c] = 0; is_over[c] = false
}

/* A member takes note of the record. */
inline see() {
	highest[c] = (exists -> MAX(highest[c], token) : highest[c]);
	if
	:: GOOD(c) -> gone[c] = false; distrust[c] = 0
	:: !GOOD(c) && !gone[c] -> gone[c] = true; distrust[c] = A
	:: else
	fi
}

/* A write was applied, as its sender knows now. */
inline won() {
	if
	:: write[c] == take ->
		slot[c] = held; running[c] = true; audit[c] = TRUST;
		highest[c] = MAX(highest[c], mine[c]);
		count_owners();
		if
		:: VALID(c) ->
			token_grew = TOKEN_IS_NEW;
			assert(token_grew);
			led = mine[c]
		:: else
		fi
	:: (write[c] == rewrite || write[c] == confirm) && slot[c] != ended ->
		audit[c] = (AUDITED(c) -> TRUST : 0); count_owners()
	:: else -> forget()
	fi;
	settled()
}

/* It was not, and will not be while its sender's incarnation lasts. */
inline refused() { settled(); forget() }

active [2] proctype member() {
	do
	/* the seat */
	:: d_step { !sits[c] && begun[c] < INCARNATIONS &&
			(shows[c] == 0 || vacated[c] || shows[c] == begun[c] || quiet[c] == 0) ->
		printf("member %d takes its seat: incarnation %d\n", c, begun[c] + 1);
		begun[c]++;
		replace(c, begun[c]);
		sits[c] = true; lease[c] = T }
	:: d_step { sits[c] && lease[c] > 0 && lease[c] + quiet[c] < 2 * T && shows[c] == begun[c] && !vacated[c] ->
		printf("member %d renews the lease on its seat\n", c);
		quiet[c] = RENEWED; lease[c] = T }
	:: d_step { sits[c] && lease[c] == 0 ->
		printf("member %d finds the lease on its seat over\n", c); rise() }
	:: d_step { sits[c] && !running[c] ->
		printf("member %d leaves its seat\n", c);
		if :: shows[c] == begun[c] -> vacated[c] = true; quiet[c] = 0 :: else fi;
		rise() }

	/* take: read the record, then the seat of its holder, and write */
	:: d_step { sits[c] && slot[c] == wanted && write[c] == none && !stands[c] ->
		printf("member %d reads the record\n", c);
		see(); stands[c] = true }
	:: d_step { sits[c] && slot[c] == wanted && write[c] == none && stands[c] && exists && !vacant && !NAMES_OWN && !is_over[c] ->
		printf("member %d reads the seat of incarnation %d of seat %d\n", c, holder, seat);
		s = seat;
		if
		:: VACANT_OVER || NAMED_OVER || SHOWN_OVER -> is_over[c] = true
		:: else ->
			if
			:: SHOWN -> absent[c] = false; wait[c] = 0
			:: !SHOWN && !absent[c] -> absent[c] = true; wait[c] = ABSENCE; is_over[c] = (ABSENCE == 0)
			:: !SHOWN && absent[c] -> is_over[c] = (wait[c] == 0)
			fi
		fi;
		if :: is_over[c] -> absent[c] = false; wait[c] = 0 :: else fi }
	:: d_step { sits[c] && lease[c] > 0 && slot[c] == wanted && write[c] == none && stands[c] && FREE && TOKEN <= TOKENS ->
		printf("member %d takes the partition, token %d\n", c, TOKEN);
		mine[c] = TOKEN;
		send(take, !exists) }

	/* a write is answered, or its sender reads back */
	:: d_step { applied[c] && !doubt[c] ->
		printf("member %d gets the answer to its write: %e\n", c, write[c]);
		won() }
	:: d_step { write[c] != none && !doubt[c] ->
		printf("member %d gets no answer in time to its write: %e\n", c, write[c]);
		doubt[c] = true }
	:: d_step { write[c] != none && doubt[c] ->
		printf("member %d reads back what has become of its write: %e\n", c, write[c]);
		if
		:: applied[c] && stands[c] && MAY_BELIEVE -> SEEN(FOUND, write[c] == take); see(); won()
		:: !applied[c] && (creates[c] -> !exists : stands[c]) -> see(); send(write[c], creates[c])
		:: else -> see(); refused()
		fi }

	/* audit */
	:: d_step { slot[c] == held && write[c] == none && (audit[c] < A || !exists || !IS_MINE || !stands[c]) ->
		printf("member %d reads its record\n", c);
		if
		:: IS_MINE -> see(); stands[c] = true; audit[c] = (fresh && !FRESH_AUDITED -> audit[c] : A); count_owners()
		:: !exists && VALID(c) -> see(); send(rewrite, true)
		:: else -> SEEN(CONTRADICTED, VALID(c) && exists); see(); forget()
		fi }
	:: d_step { (slot[c] == held || slot[c] == draining) && audit[c] == 0 ->
		printf("member %d has not read its record in time\n", c); slot[c] = ended }

	:: d_step { (slot[c] == held || slot[c] == draining) && write[c] == none && stands[c] && IS_MINE && fresh ->
		printf("member %d confirms its record\n", c); send(confirm, false) }

	/* give up */
	:: d_step { slot[c] == held && write[c] == none ->
		printf("the worker of member %d is told to stop\n", c); slot[c] = draining }
	:: d_step { running[c] && (slot[c] == draining || slot[c] == ended) ->
		printf("the worker of member %d returns\n", c); running[c] = false; slot[c] = ended }
	:: d_step { slot[c] == draining ->
		printf("the worker of member %d does not return in time\n", c); slot[c] = ended }
	:: d_step { MAY_VACATE && write[c] == none ->
		printf("member %d makes the record vacant\n", c);
		if
		:: stands[c] -> send(vacate, false)
		:: else -> forget()
		fi }
	:: d_step { sits[c] && slot[c] == wanted && write[c] == none && stands[c] && NAMES_OWN && !fresh ->
		printf("member %d finds its incarnation in the record, without a lease\n", c);
		SEEN(RELEASED_AGAIN, true);
		slot[c] = ended; mine[c] = token }

	/* the store applies a write, or never gets it */
	:: d_step { late[c].on && (!late[c].creates || !exists) && IN_TURN ->
		printf("the store applies a write of member %d: %e, token %d\n", c, late[c].action, late[c].token);
		SEEN(APPLIED_LATE, late[c].action == take && (!sits[c] || late[c].holder < begun[c]));
		awaited = !late[c].given_up;
		apply(late[c].action, late[c].creates, late[c].holder, late[c].token);
		stands[c] = awaited; applied[c] = awaited;
		drop_late(c) }
	:: d_step { late[c].given_up ->
		printf("a write of member %d is lost\n", c); drop_late(c) }
	od
}

#undef c

#define COUNT_DOWN(timer) timer = (timer > 0 -> timer - 1 : 0)

inline tick() {
	for (i : 0 .. 1) {
		COUNT_DOWN(quiet[i]); COUNT_DOWN(lease[i]); COUNT_DOWN(audit[i]); COUNT_DOWN(left[i]);
		COUNT_DOWN(distrust[i]); COUNT_DOWN(wait[i])
	}
	printf("a tick\n")
}

/* Others at a seat: another process, and a person. */
#define n (_pid - 2)

active [2] proctype others() {
	do
	:: d_step { shows[n] != STRANGER && !vacated[n] && quiet[n] == 0 ->
		printf("another process takes seat %d, and leaves it\n", n);
		replace(n, STRANGER) }
	:: d_step { edits < EDITS && shows[n] != 0 ->
		printf("a person deletes seat %d\n", n);
		shows[n] = 0; vacated[n] = false; over[n] = 0; quiet[n] = 0; edits++ }
	:: d_step { edits < EDITS && shows[n] != begun[n] && begun[n] > 0 ->
		printf("a person brings back incarnation %d of seat %d\n", begun[n], n);
		shows[n] = begun[n]; vacated[n] = false; over[n] = 0; quiet[n] = T; edits++ }
	od
}

#undef n

active proctype world() {
	do
	:: d_step { true -> tick() }
	:: d_step { founding && WHOLE(0) && WHOLE(1) && !(exists && fresh) -> printf("the plan is settled\n"); founding = false }

	/* a person deletes the partition's record, and puts it back: as it was, or as it was before the last acquisition */
	:: d_step { exists && deleted < DELETIONS && !founding && !CREATES(0) && !CREATES(1) ->
		printf("a person deletes the record\n");
		deleted++; exists = false;
		changed();
		drained = false }
	:: d_step { deleted > 0 && !exists && put_back < DELETIONS && token == newest ->
		printf("a person puts the record back\n");
		exists = true;
		changed();
		put_back++ }
	:: d_step { put_back < DELETIONS && newest > 1 && token == newest && highest[0] == newest && highest[1] == newest ->
		printf("a person puts the record back, vacant and with the token before the last\n");
		exists = true; vacant = true; fresh = false; token = newest - 1;
		changed();
		put_back++; drained = false }
	od
}
