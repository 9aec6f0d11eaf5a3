/*
 * The steps of a candidate's claim, of its lease, and of its release. The searches of
 * election.pml include this file, and the simulation replays what the library does
 * through it: internal/simulation/steps_test.go. CAN_ has the states from which a step
 * may be taken, TO_ the state that it leads to. A step without TO_ changes nothing.
 */

/* What a candidate may believe of its own acquisition. */
#define CAN_begin(x)   (x == trying || x == doubtful || x == contested || x == over)
#define TO_begin       trying
#define CAN_doubt(x)   (x == trying)
#define TO_doubt       doubtful
#define CAN_contest(x) (x == trying || x == doubtful || x == contested || x == over)
#define TO_contest     contested
#define CAN_repeat(x)  (x == trying || x == doubtful)
#define CAN_believe(x) (x == trying || x == doubtful)
#define CAN_over(x)    (x == trying)
#define TO_over        over

/* How its lease ends. */
#define CAN_win(x)     (x == none)
#define TO_win         held
#define CAN_extend(x)  (x == held || x == draining)
#define CAN_drain(x)   (x == held)
#define TO_drain       draining
#define CAN_resign(x)  (x == held || x == draining)
#define TO_resign      resigned
#define CAN_lose(x)    (x == held || x == draining)
#define TO_lose        lost
#define CAN_overrun(x) (x == draining)
#define TO_overrun     overran
#define CAN_depose(x)  (x == held || x == draining)
#define TO_depose      deposed

/* How far its release is. */
#define CAN_write(x)   (x == unwritten)
#define TO_write       writing
#define CAN_written(x) (x == writing)
#define TO_written     written
#define CAN_fail(x)    (x == writing)
#define TO_fail        failed
#define CAN_give_up(x) (x == writing)
#define TO_give_up     never_written
