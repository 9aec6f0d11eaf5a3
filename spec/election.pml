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
 * version that a candidate holds whether it is still the store's. A change of the
 * record makes it unknown, and drops the writes on their way that would compare
 * with it: they can never be applied. Only the version of a record that does not
 * exist comes back, as it does in the code. So a creation is never dropped: it is
 * applied when there is no record, however late.
 *
 * Nonces. It is enough to know of each whether it is of its writer's present
 * acquisition (CURRENT), of one that is over, so that its writer may take the record
 * at once (OVER), or of one that no candidate recognises (FORGOTTEN).
 *
 * A claim is what a candidate may believe of its own acquisition. It begins as
 * trying. It is doubtful once it has replaced "no record" by a write whose outcome
 * is not known: that write may arrive after others have led. It is contested once
 * its candidate has seen another acquisition, or the record gone. When the work
 * has stopped, a claim that is still trying is over, and the record may be taken
 * at once. A doubtful one may lead, but stays doubtful.
 *
 * A lease has two states: how it ends, and how far its release is.
 *
 *	held -> draining -> resigned, lost, overran or deposed
 *	unwritten -> writing -> written or failed, or never written
 *
 * A release is the last renewal: it is sent only within H of the write in the state
 * that it replaces.
 *
 * Each step is one d_step. Its first line says what it takes, and what it says
 * itself is shown when spin replays a trail.
 */

#include "steps.pml"

#ifndef N
#define N 2              /* candidates */
#endif
#ifndef T
#define T 2              /* the TTL, H and C, in ticks */
#endif
#ifndef TOKENS
#define TOKENS 3         /* the search ends at this token */
#endif
#ifndef LATE
#define LATE 1           /* creations that were given up, on their way at a time */
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

#ifdef RELEASE_BEFORE_LOSS /* the release is written while the lease is valid */
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
#define CLAIMABLE       (wait[c] <= 1 && distrust[c] == 0)
#else
#define CLAIMABLE       (wait[c] == 0 && distrust[c] == 0)
#endif

#ifdef RESURRECT         /* a late answer extends a lease whose time is over */
#define STILL_VALID     LEADS
#else
#define STILL_VALID     (lease[c] > 0)
#endif

#ifdef MOVES_BACK        /* a late answer makes a lost lease a held one */
#define HELD_AGAIN      (life[c] == lost || life[c] == deposed)
#else
#define HELD_AGAIN      false
#endif

#ifdef BLIND_RELEASE     /* a release does not compare */
#define BLIND           (phase[c] == releasing && exists && owner != c)
#else
#define BLIND           false
#endif

#ifdef CONTESTED_BELIEVED /* an acquisition is believed although another one was seen since */
#define BELIEVED        true
#else
#define BELIEVED        CAN_believe(claim[c])
#endif

#ifdef DOUBT_UNLED       /* what never led is over although its creation is in doubt */
#define OVER_UNLED      (claim[c] != contested)
#else
#define OVER_UNLED      CAN_over(claim[c])
#endif

#ifdef DOUBT_LED         /* what led is over although its creation is in doubt */
#define OVER_LED        (claim[c] != contested)
#else
#define OVER_LED        CAN_over(claim[c])
#endif

#ifdef TOLD_LATE         /* a release is sent after H */
#define TIMELY          true
#else
#define TIMELY          (hold[c] > 0)
#endif

#ifdef DOUBT_REPEATED    /* a release is repeated on any own state although the creation is in doubt */
#define MAY_REPEAT      true
#else
#define MAY_REPEAT      (CAN_over(claim[c]) || again[c])
#endif

#ifdef TOLD_AT_WORK      /* the release is written while the worker runs */
#define WORKER_GOES_ON  true
#else
#define WORKER_GOES_ON  false
#endif

#ifdef TOLD_AFTER_PANIC  /* the release is written after a panic */
#define PANIC_RELEASES  true
#else
#define PANIC_RELEASES  false
#endif

#ifdef TOLD_TWICE        /* a release that was written is written again */
#define WRITES_AGAIN    (release[c] == written)
#else
#define WRITES_AGAIN    false
#endif

#ifdef REQUEST_EXTENDS   /* a record with a request in it counts as renewed */
#define SHOWN_SINCE     (same[c] -> T : since)
#else
#define SHOWN_SINCE     since
#endif

#ifdef REQUEST_RESTARTS  /* a request makes challengers wait anew */
#define SAME_ATTEMPT    false
#else
#define SAME_ATTEMPT    true
#endif

/* What a search leaves out, so that it comes to an end with larger bounds. */

#ifdef NO_DRAIN          /* a lease ends by its worker's return, its time, or another record */
#define DRAINS          false
#else
#define DRAINS          FAULTY
#endif

#if LATE == 0            /* a creation that was given up is dropped like any other write */
#define OUTDATED(who)   true
#define ON_ITS_WAY      APPLIES
#else
#define OUTDATED(who)   (!late[who].create || newest == TOKENS)
#define ON_ITS_WAY      (APPLIES || sees[c] == absent && newest < TOKENS)
#endif

/*
 * What is promised when a record vanishes is promised to those who had seen it.
 * UNSEEN is wider: a candidate may have missed the last acquisitions, if what it
 * saw last was a record. Then only the time of day makes the tokens grow.
 */
#ifdef UNSEEN
#define HAS_SEEN(who)   (highest[who] > 0)
#define SEES_NEWEST     true
#define NEXT_TOKEN      (newest + 1)
#else
#define HAS_SEEN(who)   (highest[who] == newest)
#define SEES_NEWEST     (token == newest)
#define NEXT_TOKEN      (highest[c] + 1)
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
#define TAKEN_AT_ONCE 8  /* a candidate takes at once what is over */
#define HANDED_OVER   9  /* a candidate takes over after a release, before T */
#define AFTER_VANISH 10  /* a candidate leads again after the record had vanished */
#define RETOLD       11  /* a release is repeated after a read-back */
#define DRAINED      12  /* a worker drains, and then the release is written */
#define TOLD_OVERRUN 13  /* a lease whose worker took too long to stop is released */
#define TOLD_DEPOSED 14  /* a deposed lease is released */
#define TOO_LATE     15  /* a release is not sent, because H is over */
#define NEVER_TOLD   16  /* a lost lease is not released */
#define DOUBT_LEADS  17  /* an acquisition leads although its creation is in doubt */
#define CREATED_LATE 18  /* a creation is applied late, while another candidate has a valid lease */
#define DISBELIEVED  19  /* the store acknowledges an acquisition that its candidate does not believe */
#define REQUESTED    20  /* a renewal meets a request, and its candidate goes on leading */

#ifdef REACH
#define SEEN(what, condition) never_happens = !(what == REACH && (condition)); assert(never_happens)
#else
#define SEEN(what, condition) skip
#endif

/*
 * What is promised. Each has a name, and spin prints it when it does not hold.
 */
hidden byte one_valid_lease;  /* no two candidates have a valid lease */
hidden byte token_grew;       /* each acquisition that may lead has a higher token than all before */
hidden byte writes_in_order;  /* the resource takes no write that is older than one it took */
hidden byte written_after_loss; /* a release is written after the lease is over */
hidden byte written_after_work; /* a release is written after the worker has returned */
hidden byte written_once;     /* a release is written once */
hidden byte sent_in_time;     /* a release is sent within H of the write that it replaces */
hidden byte lost_for_good;    /* a lease that was over does not come back */
hidden byte leader_is_back;   /* a candidate leads within BOUND ticks of calm */
hidden byte time_passes;      /* candidates do not keep busy without end at one instant */
hidden byte never_happens;    /* what REACH names; must fail */

mtype = {
	/* phases of a candidate; idle: it has a lease, or had one, and awaits no answer */
	seek, acquiring, confirming, idle, renewing, checking, releasing, verifying,
	/* its claim */
	trying, doubtful, contested,
	/* how its lease ends */
	none, held, draining, resigned, lost, overran, deposed,
	/* its release; never is a word of Promela */
	unwritten, writing, written, failed, never_written,
	/* the record as a candidate sees it; unknown: no version that still stands;
	   over: an own one that may be taken at once */
	unknown, absent, vacant, ours, over, other
};

#define NONE 0           /* no request */
#define SENT 1           /* the request is on its way to the store */
#define BACK 2           /* the answer is on its way to the candidate */

#define FORGOTTEN 0
#define CURRENT   1
#define OVER      2

#define CHANGED 0        /* another attempt is in the record */
#define ASKED   1        /* the same attempt, with a request: another version */
#define STANDS  2        /* the same version */

/* The record. */
bool exists, vacated;    /* vacated: no candidate holds it */
byte owner;              /* who wrote it */
byte nonce;
byte token;
byte since;              /* what is left of T since this write of it was sent */

/* Each candidate. */
mtype phase[N] = seek;
mtype sees[N] = unknown; /* the record last seen */
bool  same[N];           /* its version is unknown, but its attempt still stands */
byte  highest[N];        /* the highest token seen */
byte  wait[N];           /* what is left of C */
byte  distrust[N];       /* what is left of C since the record vanished or went back */
byte  mine[N];           /* the token of the acquisition or the lease */
mtype claim[N] = trying;
mtype life[N] = none;
byte  lease[N];          /* what is left of H; 0 when not valid */
byte  hold[N];           /* the same, since the write was sent that was shown last; the end of the lease does not change it */
bool  running[N];        /* the worker has not returned */
mtype release[N] = unwritten;

/* Its request under way. */
byte  net[N] = SENT;
byte  left[N];           /* what is left of T since the write was sent that the answer will show */
mtype answer[N] = unknown;
byte  shown[N];          /* the token in the answer */
byte  fresh[N];          /* what has become of the state in the answer */
bool  again[N];          /* it has the attempt last seen */

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
hidden byte i, valid, creations, all_saw, at_once;

#define c _pid           /* a candidate's number */

#define LEADS   CAN_extend(life[c])
#define WRITES(who) (phase[who] == acquiring || phase[who] == renewing || phase[who] == releasing)
#define APPLIES ((sees[c] == absent -> !exists : sees[c] != unknown) || BLIND)

/* The candidates are alike: let number 0 be the first who acquires. */
#define IN_TURN (newest > 0 || c == 0)

inline drop_late(who) {
	late[who].on = false; late[who].create = false; late[who].release = false;
	late[who].nonce = 0; late[who].token = 0; late[who].left = 0
}

/* A version that a candidate knew does not stand any more. */
inline outdate(who) {
	sees[who] = unknown;
	if :: net[who] == SENT && WRITES(who) -> left[who] = 0 :: else fi
}

/* The record has another attempt now. */
inline changed() {
	for (i : 0 .. N-1) {
		fresh[i] = CHANGED;
		if
		:: sees[i] != absent -> outdate(i); same[i] = false; wait[i] = (again[i] -> wait[i] : 0)
		:: else
		fi;
		if
		:: OUTDATED(i) -> drop_late(i)
		:: else
		fi
	}
}

/* The record has a request now, and the attempt that it had. */
inline requested() {
	for (i : 0 .. N-1) {
		fresh[i] = (fresh[i] == STANDS -> ASKED : fresh[i]);
		if
		:: sees[i] != absent && sees[i] != unknown ->
			outdate(i); same[i] = SAME_ATTEMPT; wait[i] = (SAME_ATTEMPT -> wait[i] : 0)
		:: else
		fi;
		if
		:: !late[i].create -> drop_late(i)
		:: else
		fi
	}
}

/* The store applies a write. */
inline apply(is_release, is_new, by_nonce, by_token, by_left) {
	if
	:: is_release ->
		written_after_loss = (lease[c] == 0 || mine[c] != by_token);
		assert(written_after_loss);
		written_after_work = (!running[c] || mine[c] != by_token);
		assert(written_after_work);
		written_once = !(vacated && owner == c && token == by_token);
		assert(written_once);
		token = RELEASED_TOKEN(by_token)
	:: is_new ->
		token_grew = (by_token > newest || by_nonce != CURRENT || claim[c] == contested ||
			phase[c] != acquiring && phase[c] != confirming);
		assert(token_grew);
		newest = (by_token > newest -> by_token : newest);
		token = by_token
	:: else -> token = by_token
	fi;
	exists = true; vacated = is_release; owner = c; nonce = by_nonce;
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
	net[c] = NONE; answer[c] = unknown; shown[c] = 0; fresh[c] = CHANGED; again[c] = false; left[c] = 0
}

inline send_read(next) { phase[c] = next; net[c] = SENT; left[c] = (next == seek -> READ_SENT : 0) }

inline send_write(next) { phase[c] = next; net[c] = SENT; left[c] = (next == releasing -> 0 : T) }

/* The candidate takes note of the record in a read's answer. */
inline see() {
	if
	:: again[c] && fresh[c] == STANDS -> sees[c] = answer[c]; same[c] = false
	:: again[c] && fresh[c] != STANDS -> skip
	:: else ->
		if
		:: highest[c] > 0 && (answer[c] == absent || shown[c] < highest[c]) -> distrust[c] = DISTRUST
		:: else
		fi;
		if
		:: mine[c] > 0 && answer[c] != ours && CAN_contest(claim[c]) -> claim[c] = TO_contest
		:: else
		fi;
		wait[c] = (answer[c] == other -> FIRST_SHOWN : 0);
		sees[c] = (fresh[c] == STANDS || answer[c] == absent -> answer[c] : unknown);
		same[c] = (fresh[c] == ASKED);
		highest[c] = (shown[c] > highest[c] -> shown[c] : highest[c])
	fi
}

/* The acquisition has ended, and the work done under it has stopped: campaign again. */
inline start_again() {
	at_once = (life[c] == none -> OVER_UNLED : OVER_LED);
	if :: exists && owner == c && nonce == CURRENT -> nonce = (at_once -> OVER : FORGOTTEN); since = 0 :: else fi;
	if :: late[c].on && late[c].nonce == CURRENT -> late[c].nonce = (at_once -> OVER : FORGOTTEN); late[c].left = 0 :: else fi;
	if
	:: sees[c] == ours -> sees[c] = (at_once -> over : unknown)
	:: sees[c] == absent && claim[c] == contested -> sees[c] = unknown /* it has seen more than that */
	:: else
	fi;
	if :: sees[c] == unknown -> wait[c] = 0; same[c] = false :: else fi;
	mine[c] = 0; claim[c] = TO_begin; life[c] = none; lease[c] = 0; hold[c] = 0; running[c] = false; release[c] = unwritten;
	send_read(seek)
}

/* A write was acknowledged. */
inline acknowledged(shows) {
	sees[c] = (fresh[c] == STANDS -> shows : unknown); same[c] = (fresh[c] == ASKED); wait[c] = 0;
	highest[c] = (mine[c] > highest[c] -> mine[c] : highest[c])
}

/* The store has shown that the acquisition was applied. */
inline won() {
	if
	:: !BELIEVED -> SEEN(DISBELIEVED, true); settled(); start_again()
	:: BELIEVED && TERM(left[c]) == 0 -> settled(); start_again()
	:: else ->
		SEEN(DOUBT_LEADS, claim[c] == doubtful);
		life[c] = TO_win; lease[c] = TERM(left[c]); hold[c] = lease[c]; running[c] = true;
		phase[c] = idle; settled(); count_leases()
	fi
}

/* The store has shown that a renewal was applied. */
inline adopt() {
	hold[c] = TERM(left[c]);
	if
	:: STILL_VALID || HELD_AGAIN ->
		lost_for_good = (lease[c] > 0);
		assert(lost_for_good);
		lease[c] = TERM(left[c])
	:: else -> end(TO_lose)
	fi;
	phase[c] = idle; settled(); count_leases()
}

/* The lease is over. One that was over before stays as it ended. */
inline end(how) {
	life[c] = (LEADS -> how : life[c]); lease[c] = (how == resigned -> GIVE_UP : 0)
}

/* The release is over. */
inline finish(outcome) { release[c] = outcome; phase[c] = idle; settled(); hold[c] = 0 }

/* The release is sent, which says that no candidate leads; but not after H. */
inline vacate() {
	if
	:: TIMELY ->
		sent_in_time = (hold[c] > 0);
		assert(sent_in_time);
		release[c] = TO_write; send_write(releasing)
	:: else -> SEEN(TOO_LATE, true); finish(TO_fail)
	fi
}

/*
 * A write was given up. If the store has not got it yet, it is on its way. A
 * creation is in doubt from now on.
 */
inline leave_late() {
	creations = 0;
	for (i : 0 .. N-1) { creations = creations + late[i].create }
	if
	:: net[c] == SENT && ON_ITS_WAY && !late[c].create && (LATE == 0 || sees[c] != absent || creations < LATE) ->
		late[c].on = true; late[c].create = (sees[c] == absent); late[c].release = (phase[c] == releasing);
		late[c].nonce = CURRENT; late[c].token = mine[c]; late[c].left = left[c]
	:: else
	fi;
	if
	:: phase[c] == acquiring && sees[c] == absent && CAN_doubt(claim[c]) -> claim[c] = TO_doubt
	:: else
	fi
}

#ifdef CALM
bool calm;               /* from now on nothing fails, and every candidate is prompt */
byte gap;                /* ticks without a valid lease */
byte steps;              /* since the last tick */
bool polled[N];
bool asked;              /* one request between two ticks */
#define FAULTY   (!calm)
#define PROMPT_RENEWAL (!calm || lease[c] < T)
#define PROMPT_READ    (!calm || phase[c] != seek || !polled[c])
#define STEP     if :: calm -> steps++; time_passes = (steps < 30 * N); assert(time_passes) :: else fi
#define POLLED   if :: calm && phase[c] == seek -> polled[c] = true :: else fi
#define MAY_ASK  (!asked)
#define HAS_ASKED asked = calm
#else
#define FAULTY   true
#define PROMPT_RENEWAL true
#define PROMPT_READ    true
#define STEP     skip
#define POLLED   skip
#define MAY_ASK  true
#define HAS_ASKED skip
#endif

active [N] proctype candidate() {
	do
	/* campaign: read; claim the record if it may be claimed, or read again */
	:: d_step { phase[c] == seek && net[c] == BACK -> STEP;
		printf("candidate %d gets an answer: %e\n", c, answer[c]);
		see();
		settled();
		if
		:: CLAIMABLE && NEXT_TOKEN <= TOKENS -> mine[c] = NEXT_TOKEN; send_write(acquiring)
		:: else ->
			if :: sees[c] == unknown && !same[c] -> wait[c] = 0 :: else fi;
			send_read(seek)
		fi }

	/* acquire: write, read back, write again or give up */
	:: d_step { phase[c] == acquiring && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its acquisition\n", c);
		acknowledged(ours); won() }
	:: d_step { phase[c] == acquiring && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its acquisition unanswered\n", c);
		leave_late(); settled();
		if
		:: !CAN_repeat(claim[c]) -> start_again()
		:: else -> send_read(confirming)
		fi }
	:: d_step { LATE > 0 && phase[c] == acquiring && net[c] == SENT && sees[c] == absent && claim[c] != contested &&
			exists && !(owner == c && nonce != FORGOTTEN) && FAULTY ->
		printf("candidate %d is shown another acquisition meanwhile\n", c);
		claim[c] = TO_contest; highest[c] = (token > highest[c] -> token : highest[c]) }
	:: d_step { phase[c] == confirming && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		see();
		if
		:: answer[c] == ours -> SEEN(ACQUIRED_BACK, left[c] > 0); won()
		:: answer[c] != ours && again[c] && CLAIMABLE -> settled(); send_write(acquiring)
		:: else -> settled(); start_again()
		fi }
	:: d_step { phase[c] == confirming && net[c] == BACK && answer[c] == ours && CAN_over(claim[c]) && FAULTY ->
		printf("candidate %d is cancelled, and reads back its own record\n", c);
		hold[c] = left[c]; see(); settled(); vacate() }
	:: d_step { phase[c] == confirming && FAULTY && CLAIMABLE ->
		printf("candidate %d cannot read back, and writes again\n", c); settled(); send_write(acquiring) }
	:: d_step { phase[c] == confirming && FAULTY ->
		printf("candidate %d cannot read back, and gives up\n", c); settled(); start_again() }

	/* renew: write, read back */
	:: d_step { phase[c] == idle && LEADS && lease[c] > 0 && PROMPT_RENEWAL -> STEP;
		printf("candidate %d renews\n", c); send_write(renewing) }
	:: d_step { phase[c] == renewing && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its renewal\n", c);
		acknowledged(ours); adopt() }
	:: d_step { phase[c] == renewing && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its renewal unanswered, and reads back\n", c);
		lease[c] = UNANSWERED; leave_late(); settled(); send_read(checking); count_leases() }
	:: d_step { phase[c] == checking && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		SEEN(REQUESTED, answer[c] == ours && same[c] && left[c] > 0);
		see();
		if
		:: answer[c] == ours -> SEEN(READ_BACK, !again[c] && lease[c] > 0); adopt()
		:: else -> end(TO_lose); phase[c] = idle; settled()
		fi }
	:: d_step { phase[c] == checking && FAULTY ->
		printf("candidate %d cannot read back\n", c); phase[c] = idle; settled() }

	/* the lease ends */
	:: d_step { phase[c] == idle && CAN_lose(life[c]) && lease[c] == 0 -> STEP;
		printf("candidate %d finds its lease over\n", c); end(TO_lose) }
	:: d_step { phase[c] == idle && CAN_drain(life[c]) && lease[c] > 0 && DRAINS ->
		printf("the worker of candidate %d is told to stop\n", c); life[c] = TO_drain }
	:: d_step { phase[c] == idle && lease[c] > 0 && (life[c] == held && FAULTY || life[c] == draining) -> STEP;
		printf("the worker of candidate %d returns\n", c);
		SEEN(DRAINED, life[c] == draining);
		end(TO_resign); running[c] = WORKER_GOES_ON; vacate() }
	:: d_step { phase[c] == idle && CAN_resign(life[c]) && lease[c] > 0 && DRAINS ->
		printf("candidate %d resigns while its worker runs\n", c); end(TO_resign) }
	:: d_step { life[c] == draining && lease[c] > 0 && DRAINS ->
		printf("the worker of candidate %d does not stop in time\n", c); end(TO_overrun) }
	:: d_step { CAN_depose(life[c]) && lease[c] > 0 && DRAINS ->
		printf("candidate %d is deposed\n", c); end(TO_depose) }
	:: d_step { phase[c] == idle && running[c] && release[c] == unwritten && DRAINS ->
		printf("the worker of candidate %d panics\n", c);
		end(TO_lose);
		if
		:: PANIC_RELEASES -> vacate()
		:: else -> release[c] = TO_give_up
		fi }

	/* the release of what did not expire is written once the worker has returned */
	:: d_step { phase[c] == idle && running[c] && !LEADS && release[c] == unwritten -> STEP;
		printf("the worker of candidate %d returns, after its lease was %e\n", c, life[c]);
		running[c] = WORKER_GOES_ON;
		if
		:: life[c] != lost -> vacate()
		:: else -> SEEN(NEVER_TOLD, true); release[c] = TO_give_up
		fi }
	:: d_step { phase[c] == releasing && net[c] == BACK -> STEP;
		printf("candidate %d gets the acknowledgement of its release\n", c);
		SEEN(TOLD_OVERRUN, life[c] == overran);
		SEEN(TOLD_DEPOSED, life[c] == deposed);
		acknowledged(vacant); finish(TO_written) }
	:: d_step { phase[c] == releasing && (FAULTY || net[c] == SENT && !APPLIES) -> STEP;
		printf("candidate %d gives up its release unanswered, and reads back\n", c);
		leave_late(); settled(); send_read(verifying) }
	:: d_step { phase[c] == verifying && net[c] == BACK -> STEP;
		printf("candidate %d reads back: %e\n", c, answer[c]);
		see();
		if
		:: answer[c] == ours && MAY_REPEAT -> SEEN(RETOLD, left[c] > 0); hold[c] = left[c]; settled(); vacate()
		:: answer[c] == ours && !MAY_REPEAT -> finish(TO_give_up)
		:: else -> finish(TO_written)
		fi }
	:: d_step { phase[c] == verifying && FAULTY ->
		printf("candidate %d cannot read back, and leaves it at that\n", c); finish(TO_fail) }
	:: d_step { phase[c] == idle && WRITES_AGAIN && FAULTY ->
		printf("candidate %d writes its release again\n", c); release[c] = TO_write; send_write(releasing) }
	:: d_step { phase[c] == idle && (release[c] == written || release[c] == failed || release[c] == never_written) -> STEP;
		printf("candidate %d campaigns again\n", c);
		start_again() }

	/* the process dies, and another one is started in its place */
	:: d_step { exists && SEES_NEWEST && (sees[c] != unknown || highest[c] > 0) && FAULTY ->
		printf("candidate %d dies and is started again\n", c);
		if :: WRITES(c) -> leave_late() :: else fi;
		settled(); start_again();
		if :: owner == c -> nonce = FORGOTTEN :: else fi;
		if :: late[c].on -> late[c].nonce = FORGOTTEN :: else fi;
		sees[c] = unknown; same[c] = false; highest[c] = 0; wait[c] = 0; distrust[c] = 0 }

	/* the store carries out a request */
	:: d_step { net[c] == SENT && !WRITES(c) && PROMPT_READ -> STEP; POLLED;
		printf("the store answers a read of candidate %d\n", c);
		net[c] = BACK; fresh[c] = (exists -> STANDS : CHANGED);
		again[c] = (sees[c] == absent -> !exists : sees[c] != unknown || same[c]);
		if
		:: !exists -> answer[c] = absent; left[c] = 0
		:: exists && vacated -> answer[c] = vacant; shown[c] = token; left[c] = 0
		:: exists && !vacated && owner == c && nonce == CURRENT -> answer[c] = ours; shown[c] = token; left[c] = SHOWN_SINCE
		:: exists && !vacated && owner == c && nonce == OVER -> answer[c] = over; shown[c] = token; left[c] = 0
		:: else -> answer[c] = other; shown[c] = token
		fi;
		if :: again[c] -> shown[c] = 0 :: else fi }
	:: d_step { net[c] == SENT && WRITES(c) && APPLIES && IN_TURN -> STEP;
		printf("the store applies a write of candidate %d: %e, token %d\n", c, phase[c], mine[c]);
		SEEN(TAKEOVER, phase[c] == acquiring && sees[c] == other && owner != c);
		SEEN(TAKEN_AT_ONCE, phase[c] == acquiring && sees[c] == over);
		SEEN(HANDED_OVER, phase[c] == acquiring && sees[c] == vacant && owner != c);
		SEEN(AFTER_VANISH, phase[c] == acquiring && sees[c] == absent && newest > 0);
		net[c] = BACK;
		apply((phase[c] == releasing), (phase[c] == acquiring), CURRENT, mine[c], left[c]);
		fresh[c] = STANDS }

	/* the store carries out a write that was given up, or never gets it */
	:: d_step { late[c].on && !(late[c].create && exists) && IN_TURN -> STEP;
		printf("the store applies a late write of candidate %d, token %d\n", c, late[c].token);
		SEEN(LATE_APPLIED, true);
		valid = 0;
		for (i : 0 .. N-1) { valid = valid + (lease[i] > 0 && i != c) }
		SEEN(CREATED_LATE, late[c].create && valid > 0);
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
			SEEN(PAUSED, LEADS && lease[c] == 0);
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
		COUNT_DOWN(lease[i]); COUNT_DOWN(hold[i]); COUNT_DOWN(left[i]); COUNT_DOWN(wait[i]); COUNT_DOWN(distrust[i]); COUNT_DOWN(late[i].left)
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
	:: d_step { timeout && calm -> tick(); steps = 0; asked = false;
		valid = 0;
		for (i : 0 .. N-1) { valid = valid + (lease[i] > 0); polled[i] = false }
		gap = (valid > 0 -> 0 : gap + 1);
		leader_is_back = (gap <= BOUND);
		assert(leader_is_back) }
#else
	:: d_step { true -> tick() }
#endif

#ifndef NO_REQUEST
	/* another process asks the leader to resign */
	:: d_step { exists && !vacated && MAY_ASK ->
		printf("another process writes a request into the record\n");
		requested();
		HAS_ASKED }
#endif

	/*
	 * A person deletes the record. What each candidate saw last must have been a
	 * record, so that it can see that it is gone. After the last token no candidate
	 * could lead any more, so nothing is deleted.
	 */
	:: d_step { exists && newest < TOKENS && FAULTY ->
		all_saw = true;
		for (i : 0 .. N-1) {
			all_saw = all_saw && HAS_SEEN(i) && (sees[i] != absent || claim[i] == contested)
		}
		if
		:: all_saw ->
			printf("a person deletes the record\n");
			SEEN(LOST_HELD, !vacated && nonce == CURRENT && lease[owner] > 0);
			exists = false; vacated = false; owner = 0; nonce = 0; token = 0; since = 0;
			changed()
		:: else
		fi }
	od
}
