/*
 * The election of this library as a model for spin. README.md beside this file
 * maps each step to the code, and says what is left out.
 *
 * Time. One tick is the smallest time that is told apart, and every timer counts
 * down. H and C are both T ticks of true time: a holder's clock that is slow by
 * rho makes H as long as the TTL, a challenger's clock that is fast by rho makes
 * C as short as the TTL. No milder drift brings the two closer together.
 *
 * Pauses. A candidate may take its next step at any later tick, or never.
 *
 * Messages. A request is sent, then carried out by the store, then answered, and
 * each of them takes any time. Its sender may give up at any moment: what it
 * waited for was lost, or late. A write that was given up before the store
 * carried it out goes on by itself, and is applied late or never.
 *
 * Versions. A counter would make the states endless. It is enough to know of each
 * version that somebody holds whether it is still the store's. A change of the
 * record makes it unknown, and drops the writes on their way that would compare
 * with it: they can never be applied. Only the version of a record that does not
 * exist comes back, as it does in the code.
 *
 * Nonces. It is enough to know of each whether it is of its writer's present
 * acquisition (CURRENT), of one that its writer has given up (ABANDONED), or of
 * a process that has died since (FORGOTTEN).
 *
 * Each step is one d_step. Its first line says what it takes, and what it says
 * itself is shown when spin replays a trail.
 */

#ifndef N
#define N 2              /* candidates */
#endif
#ifndef T
#define T 2              /* the TTL, H and C, in ticks */
#endif
#ifndef TOKENS
#define TOKENS 3         /* the search ends at this token */
#endif

/* The mutants. Each changes one of these definitions. */

#ifdef NO_FENCE          /* the resource takes every write */
#define REFUSED(t)      false
#else
#define REFUSED(t)      ((t) < accepted)
#endif

#ifdef H_FROM_RESPONSE   /* the lease counts from the answer */
#define TERM(sent)      T
#else
#define TERM(sent)      (sent)
#endif

#ifdef CLOCK_BEFORE_READ /* the challenger counts from before the read was sent */
#define READ_SENT       T
#define FIRST_SHOWN     left[c]
#else
#define READ_SENT       0
#define FIRST_SHOWN     T
#endif

#ifdef RELEASE_BEFORE_LOSS /* the store is told while the lease is valid */
#define GIVE_UP         lease[c]
#else
#define GIVE_UP         0
#endif

#ifdef TOKEN_RESET       /* a release starts the tokens again */
#define RELEASED_TOKEN(t) 0
#else
#define RELEASED_TOKEN(t) (t)
#endif

#ifdef AMBIGUOUS_SUCCESS /* a renewal without an answer counts as a success */
#define UNANSWERED      left[c]
#else
#define UNANSWERED      lease[c]
#endif

#ifdef VANISHED_VACANT   /* a record that vanished is free at once */
#define DISTRUST        0
#else
#define DISTRUST        T
#endif

#ifdef SHORT_WAIT        /* the challenger waits for less than the TTL */
#define CLAIMABLE       (wait[c] <= 1 && held[c] == 0)
#else
#define CLAIMABLE       (wait[c] == 0 && held[c] == 0)
#endif

#ifdef RESURRECT         /* a late answer brings back a lease that was over */
#define STILL_VALID     true
#else
#define STILL_VALID     (lease[c] > 0)
#endif

#ifdef BLIND_RELEASE     /* a release does not compare */
#define BLIND           (phase[c] == releasing && exists)
#else
#define BLIND           false
#endif

#ifdef LATE_CREATE       /* a creation is on its way while another record comes and goes */
#define OVERTAKEN(who)  (!late[who].create)
#define CREATION_UNDER_WAY false
#else
#define OVERTAKEN(who)  true
#define CREATION_UNDER_WAY creation_under_way
#endif

/*
 * What must be seen to happen. REACH names one of them; the search then has to
 * stop there, and the trail is an example of it.
 */
#define TAKEOVER      1  /* a candidate takes over after another one's TTL */
#define READ_BACK     2  /* a lease is extended by a write whose answer was lost */
#define LATE_APPLIED  3  /* the store applies a write that its sender gave up */
#define LOST_HELD     4  /* the record vanishes while a lease on it is valid */
#define PAUSED        5  /* a worker writes past H, and does not know it yet */
#define REFUSAL       6  /* the resource refuses a stale write */
#define ACQUIRED_BACK 7  /* an acquisition is found by reading back */
#define RETAKEN       8  /* a candidate retakes what it abandoned, at once */
#define HANDED_OVER   9  /* a candidate takes over after a release, before T */
#define AFTER_VANISH 10  /* somebody leads again after the record had vanished */
#define RETOLD       11  /* a release is told a second time */

#ifdef REACH
#define SEEN(what, condition) never_happens = !(what == REACH && (condition)); assert(never_happens)
#else
#define SEEN(what, condition) skip
#endif

/*
 * What is promised. Each has a name, and spin prints it when it does not hold.
 */
hidden byte one_valid_lease;  /* no two candidates have a valid lease */
hidden byte token_grew;       /* each acquisition has a higher token than all before */
hidden byte writes_in_order;  /* the resource takes no write that is older than one it took */
hidden byte told_after_loss;  /* the store is told of a release after the lease is over */
hidden byte lost_for_good;    /* a lease that was over does not come back */
hidden byte leader_is_back;   /* somebody leads within BOUND ticks of calm */
hidden byte time_passes;      /* candidates do not keep busy without end at one instant */
hidden byte never_happens;    /* what REACH names; must fail */

mtype = {
	/* phases of a candidate */
	seek, acquiring, confirming, leading, renewing, checking, releasing, verifying,
	/* the record as somebody sees it; unknown: no state that still stands */
	unknown, absent, vacant, ours, abandoned, other
};

#define NONE 0           /* no request */
#define SENT 1           /* the request is on its way to the store */
#define BACK 2           /* the answer is on its way to the candidate */

#define FORGOTTEN 0
#define CURRENT   1
#define ABANDONED 2

/* The record. */
bool exists, free;       /* free: nobody holds it */
byte owner;              /* who wrote it */
byte nonce;
byte token;
byte since;              /* what is left of T since this write of it was sent */

/* Each candidate. */
mtype phase[N] = seek;
mtype sees[N] = unknown; /* the sighting */
byte  highest[N];        /* the highest token seen */
byte  wait[N];           /* what is left of C */
byte  held[N];           /* what is left of the distrust of a record that vanished */
byte  mine[N];           /* the token of the acquisition or the lease */
byte  lease[N];          /* what is left of H; 0 when not valid */

/* Its request under way. */
byte  net[N] = SENT;
byte  left[N];           /* what is left of T since the write was sent that the answer will show */
mtype answer[N] = unknown;
byte  shown[N];          /* the token in the answer */
bool  fresh[N];          /* the state in the answer still stands */
bool  again[N];          /* it is the state last seen */

/* A write that its sender gave up, one for each candidate. */
typedef Late { bool on, create, release; byte nonce, token, left };
Late late[N];

/* The resource, and the write that each candidate's worker has on its way to it. */
byte accepted;
#ifndef NO_WORK
byte work[N];
#endif

/* For the checks alone. */
byte newest;             /* the highest token of any acquisition */
byte writer;             /* who wrote last to the resource */
hidden byte i, valid, creation_under_way, all_saw;

#define c _pid           /* a candidate's number */

#define WRITES  (phase[c] == acquiring || phase[c] == renewing || phase[c] == releasing)
#define APPLIES ((sees[c] == absent -> !exists : sees[c] != unknown) || BLIND)

inline drop_late(who) {
	late[who].on = false; late[who].create = false; late[who].release = false;
	late[who].nonce = 0; late[who].token = 0; late[who].left = 0
}

/* The record has another version now. */
inline changed() {
	for (i : 0 .. N-1) {
		fresh[i] = false;
		if
		:: sees[i] != absent -> sees[i] = unknown; wait[i] = (again[i] -> wait[i] : 0)
		:: else
		fi;
		if
		:: OVERTAKEN(i) -> drop_late(i)
		:: else
		fi
	}
}

/* The store applies a write. */
inline apply(is_release, is_new, by_nonce, by_token, by_left) {
	if
	:: is_release ->
		told_after_loss = (lease[c] == 0 || mine[c] != by_token);
		assert(told_after_loss);
		token = RELEASED_TOKEN(by_token)
	:: is_new ->
		token_grew = (by_token > newest);
		assert(token_grew);
		newest = by_token;
		token = by_token
	:: else -> token = by_token
	fi;
	exists = true; free = is_release; owner = c; nonce = by_nonce;
	since = (by_nonce == CURRENT && !is_release -> by_left : 0);
	changed()
}

/* No two candidates may have a valid lease. */
inline count_leases() {
	valid = 0;
	for (i : 0 .. N-1) { valid = valid + (lease[i] > 0) }
	one_valid_lease = (valid <= 1);
	assert(one_valid_lease)
}

/* The request is over for its sender. */
inline settled() {
	net[c] = NONE; answer[c] = unknown; shown[c] = 0; fresh[c] = false; again[c] = false; left[c] = 0
}

inline send_read(next) { phase[c] = next; net[c] = SENT; left[c] = (next == seek -> READ_SENT : 0) }

inline send_write(next) { phase[c] = next; net[c] = SENT; left[c] = T }

/* The candidate takes note of the record in a read's answer. */
inline see() {
	if
	:: again[c] -> skip
	:: else ->
		if
		:: highest[c] > 0 && (answer[c] == absent || shown[c] < highest[c]) -> held[c] = DISTRUST
		:: else
		fi;
		wait[c] = (answer[c] == other -> FIRST_SHOWN : 0);
		sees[c] = (fresh[c] || answer[c] == absent -> answer[c] : unknown);
		highest[c] = (shown[c] > highest[c] -> shown[c] : highest[c])
	fi
}

/* The candidate's acquisition is over, and its worker has returned: campaign again. */
inline abandon() {
	lease[c] = 0; mine[c] = 0;
	if :: exists && owner == c && nonce == CURRENT -> nonce = ABANDONED; since = 0 :: else fi;
	if :: late[c].on && late[c].nonce == CURRENT -> late[c].nonce = ABANDONED; late[c].left = 0 :: else fi;
	if :: sees[c] == ours -> sees[c] = abandoned :: else fi;
	if :: sees[c] == unknown -> wait[c] = 0 :: else fi;
	send_read(seek)
}

/* A write was acknowledged. */
inline acknowledged(shows) {
	sees[c] = (fresh[c] -> shows : unknown); wait[c] = 0;
	highest[c] = (mine[c] > highest[c] -> mine[c] : highest[c])
}

/* The store has shown that the acquisition was applied. */
inline won() {
	if
	:: mine[c] < highest[c] || held[c] > 0 || TERM(left[c]) == 0 -> settled(); abandon()
	:: else -> lease[c] = TERM(left[c]); phase[c] = leading; settled(); count_leases()
	fi
}

/* The store has shown that a renewal was applied. */
inline adopt() {
	if
	:: STILL_VALID ->
		lost_for_good = (lease[c] > 0);
		assert(lost_for_good);
		lease[c] = TERM(left[c]); phase[c] = leading; settled(); count_leases()
	:: else -> settled(); abandon()
	fi
}

/* A write was given up; if the store has not got it yet, it is on its way. */
inline leave_late() {
	if
	:: net[c] == SENT && APPLIES ->
		late[c].on = true; late[c].create = (sees[c] == absent); late[c].release = (phase[c] == releasing);
		late[c].nonce = CURRENT; late[c].token = mine[c]; late[c].left = (phase[c] == releasing -> 0 : left[c])
	:: else
	fi
}

#ifdef CALM
bool calm;               /* from now on nothing fails, and everybody is prompt */
byte gap;                /* ticks without a valid lease */
byte steps;              /* since the last tick */
bool polled[N];
#define FAULTY   (!calm)
#define PROMPT_RENEWAL (!calm || lease[c] < T)
#define PROMPT_READ    (!calm || phase[c] != seek || !polled[c])
#define STEP     if :: calm -> steps++; time_passes = (steps < 30 * N); assert(time_passes) :: else fi
#define POLLED   if :: calm && phase[c] == seek -> polled[c] = true :: else fi
#else
#define FAULTY   true
#define PROMPT_RENEWAL true
#define PROMPT_READ    true
#define STEP     skip
#define POLLED   skip
#endif

active [N] proctype candidate() {
	do
	/* campaign: read; claim the record if it may be claimed, or read again */
	:: d_step { phase[c] == seek && net[c] == BACK -> STEP;
		printf("candidate %d gets an answer: %e\n", c, answer[c]);
		see();
		settled();
		if
		:: CLAIMABLE && highest[c] < TOKENS -> mine[c] = highest[c] + 1; send_write(acquiring)
		:: else ->
			if :: sees[c] == unknown -> wait[c] = 0 :: else fi;
			send_read(seek)
		fi }

	/* acquire: write, read back, write again or give up */
	:: d_step { phase[c] == acquiring && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its acquisition\n", c); acknowledged(ours); won() }
	:: d_step { phase[c] == acquiring && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its acquisition unanswered, and reads back\n", c);
		leave_late(); settled(); send_read(confirming) }
	:: d_step { phase[c] == confirming && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		see();
		if
		:: answer[c] == ours -> SEEN(ACQUIRED_BACK, left[c] > 0); won()
		:: answer[c] != ours && again[c] && CLAIMABLE -> settled(); send_write(acquiring)
		:: else -> settled(); abandon()
		fi }
	:: d_step { phase[c] == confirming && FAULTY && CLAIMABLE ->
		printf("candidate %d cannot read back, and writes again\n", c); settled(); send_write(acquiring) }
	:: d_step { phase[c] == confirming && FAULTY ->
		printf("candidate %d cannot read back, and gives up\n", c); settled(); abandon() }

	/* keep: renew, read back */
	:: d_step { phase[c] == leading && lease[c] > 0 && PROMPT_RENEWAL -> STEP;
		printf("candidate %d renews\n", c); send_write(renewing) }
	:: d_step { phase[c] == leading && lease[c] == 0 -> STEP;
		printf("candidate %d finds its lease over\n", c); abandon() }
	:: d_step { phase[c] == renewing && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its renewal\n", c); acknowledged(ours); adopt() }
	:: d_step { phase[c] == renewing && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its renewal unanswered, and reads back\n", c);
		lease[c] = UNANSWERED; leave_late(); settled(); send_read(checking); count_leases() }
	:: d_step { phase[c] == checking && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		see();
		if
		:: answer[c] == ours -> SEEN(READ_BACK, !again[c] && lease[c] > 0); adopt()
		:: else -> settled(); abandon()
		fi }
	:: d_step { phase[c] == checking && FAULTY ->
		printf("candidate %d cannot read back\n", c); settled(); phase[c] = leading }

	/* resign: the lease is over, then the store is told, for as long as that is worth it */
	:: d_step { phase[c] == leading && lease[c] > 0 && FAULTY ->
		printf("candidate %d resigns\n", c); lease[c] = GIVE_UP; send_write(releasing); left[c] = 0 }
	:: d_step { phase[c] == releasing && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its release\n", c); acknowledged(vacant); settled(); abandon() }
	:: d_step { phase[c] == releasing && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its release unanswered, and reads back\n", c);
		leave_late(); settled(); send_read(verifying) }
	:: d_step { phase[c] == verifying && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		see();
		if
		:: answer[c] == ours -> SEEN(RETOLD, true); settled(); send_write(releasing); left[c] = 0
		:: else -> settled(); abandon()
		fi }
	:: d_step { phase[c] == verifying && FAULTY ->
		printf("candidate %d cannot read back, and tells the store again\n", c); settled(); send_write(releasing); left[c] = 0 }
	:: d_step { phase[c] == verifying && FAULTY ->
		printf("candidate %d cannot read back, and leaves it at that\n", c); settled(); abandon() }

	/* the process dies, and another one is started in its place */
	:: d_step { exists && (sees[c] != unknown || highest[c] > 0) && FAULTY ->
		printf("candidate %d dies and is started again\n", c);
		if :: WRITES -> leave_late() :: else fi;
		settled(); abandon();
		if :: owner == c -> nonce = FORGOTTEN :: else fi;
		if :: late[c].on -> late[c].nonce = FORGOTTEN :: else fi;
		sees[c] = unknown; highest[c] = 0; wait[c] = 0; held[c] = 0 }

	/* the store carries out a request */
	:: d_step { net[c] == SENT && !WRITES && PROMPT_READ -> STEP; POLLED;
		printf("the store answers a read of candidate %d\n", c);
		net[c] = BACK; fresh[c] = exists;
		again[c] = (sees[c] == absent -> !exists : sees[c] != unknown);
		if
		:: !exists -> answer[c] = absent; left[c] = 0
		:: exists && free -> answer[c] = vacant; shown[c] = token; left[c] = 0
		:: exists && !free && owner == c && nonce == CURRENT -> answer[c] = ours; shown[c] = token; left[c] = since
		:: exists && !free && owner == c && nonce == ABANDONED -> answer[c] = abandoned; shown[c] = token; left[c] = 0
		:: else -> answer[c] = other; shown[c] = token
		fi;
		if :: again[c] -> shown[c] = 0 :: else fi }
	:: d_step { net[c] == SENT && WRITES && APPLIES -> STEP;
		printf("the store applies a write of candidate %d: %e, token %d\n", c, phase[c], mine[c]);
		SEEN(TAKEOVER, phase[c] == acquiring && sees[c] == other && owner != c);
		SEEN(RETAKEN, phase[c] == acquiring && sees[c] == abandoned);
		SEEN(HANDED_OVER, phase[c] == acquiring && sees[c] == vacant && owner != c);
		SEEN(AFTER_VANISH, phase[c] == acquiring && sees[c] == absent && newest > 0);
		apply((phase[c] == releasing), (phase[c] == acquiring), CURRENT, mine[c], left[c]);
		net[c] = BACK; fresh[c] = true }

	/* the store carries out a write that was given up, or never gets it */
	:: d_step { late[c].on && !(late[c].create && exists) -> STEP;
		printf("the store applies a late write of candidate %d, token %d\n", c, late[c].token);
		SEEN(LATE_APPLIED, true);
		apply(late[c].release, (late[c].create || late[c].token > token), late[c].nonce, late[c].token, late[c].left);
		drop_late(c) }
	:: d_step { late[c].on -> STEP;
		printf("a late write of candidate %d is lost\n", c);
		drop_late(c) }

#ifndef NO_WORK
	/* the worker: Check, and then the write, which takes any time */
	:: d_step { lease[c] > 0 && work[c] != mine[c] && FAULTY ->
		printf("the worker of candidate %d checks its lease, token %d\n", c, mine[c]);
		work[c] = mine[c] }
	:: d_step { work[c] > 0 && FAULTY ->
		printf("the resource gets the write of candidate %d, token %d\n", c, work[c]);
		if
		:: REFUSED(work[c]) -> SEEN(REFUSAL, true)
		:: else ->
			SEEN(PAUSED, phase[c] == leading && lease[c] == 0);
			writes_in_order = (work[c] > accepted || work[c] == accepted && writer == c);
			assert(writes_in_order);
			accepted = work[c]; writer = c
		fi;
		work[c] = 0 }
#endif
	od
}

#undef c

#define COUNT_DOWN(timer) timer = (timer > 0 -> timer - 1 : 0)

inline tick() {
	printf("a tick\n");
	for (i : 0 .. N-1) {
		COUNT_DOWN(lease[i]); COUNT_DOWN(left[i]); COUNT_DOWN(wait[i]); COUNT_DOWN(held[i]); COUNT_DOWN(late[i].left)
	}
	COUNT_DOWN(since)
}

active proctype world() {
	do
#ifdef CALM
	:: d_step { !calm -> tick() }
	:: d_step { !calm && newest < TOKENS - 1 ->
		printf("calm from here on\n");
		calm = true }
	:: d_step { timeout && calm -> tick(); steps = 0;
		valid = 0;
		for (i : 0 .. N-1) { valid = valid + (lease[i] > 0); polled[i] = false }
		gap = (valid > 0 -> 0 : gap + 1);
		leader_is_back = (gap <= BOUND);
		assert(leader_is_back) }
#else
	:: d_step { true -> tick() }
#endif

	/*
	 * Somebody deletes the record. What is promised then is promised to those who
	 * had seen it, so all have.
	 */
	:: d_step { exists && FAULTY ->
		all_saw = true; creation_under_way = false;
		for (i : 0 .. N-1) {
			all_saw = all_saw && highest[i] == newest;
			creation_under_way = creation_under_way || late[i].create || phase[i] == acquiring && net[i] == SENT && sees[i] == absent
		}
		if
		:: all_saw && !CREATION_UNDER_WAY ->
			printf("somebody deletes the record\n");
			SEEN(LOST_HELD, !free && nonce == CURRENT && lease[owner] > 0);
			exists = false; free = false; owner = 0; nonce = 0; token = 0; since = 0;
			changed()
		:: else
		fi }
	od
}
