package report

import "github.com/elector-go/elector/bench/results"

// A place is where a reason belongs: the rows of a case, whatever the number of
// waiters or elections and the unit. An empty store stands for all of them.
type place struct{ subject, store, what string }

// reasons say why our library is behind in a row, and what it would take. They
// are written by hand, as sentences in Markdown. The page says of a row that is
// behind and has none that it is not explained yet.
var reasons = map[place]string{
	{results.Cost, "", "opening and first acquire"}: firstRead,
	{results.Cost, "", "opening"}:                   firstRead,

	{results.Cost, "", "uncontended acquire"}:                                          wholeRecord,
	{results.Cost, "", "holding for one TTL"}:                                          wholeRecord,
	{results.Cost, "", "resign"}:                                                       wholeRecord,
	{results.Cost, "", "closing after a resign"}:                                       "A store's client says goodbye, or answers to a sign of life that the server wanted just then.",
	{results.Cost, "etcd", "waiting for one TTL"}:                                      pushedRenewals,
	{results.Cost, "etcd", "observing for one TTL"}:                                    pushedRenewals,
	{results.Cost, "etcd", "handover"}:                                                 everyoneIsTold,
	{results.Cost, "etcd", "handover and one TTL after it"}:                            everyoneIsTold,
	{results.Cost, "zookeeper", "uncontended acquire"}:                                 "A read is a sync and then a get, since a follower may lag behind, and the write changes the record, checks that no other one was made in its place, and makes the leader's node. The queue of a lock needs no read before its first write, and has no record. It would take a client that sends the two at once, which go-zookeeper does not.",
	{results.Cost, "zookeeper", "holding for one TTL"}:                                 "The record is renewed, and the session too, which the client pings for whatever else it sends. A lock lives by its session alone, which was measured to end seconds before its holder could know. Without a leader's node no session would have to be held; operators would then not see who leads.",
	{results.Cost, "zookeeper", "waiting for one TTL"}:                                 eventsAreEmpty,
	{results.Cost, "zookeeper", "handover"}:                                            eventsAreEmpty,
	{results.Cost, "zookeeper", "handover and one TTL after it"}:                       eventsAreEmpty,
	{results.Cost, "postgres", "waiting for one TTL"}:                                  polledInStep + " One connection of the pool listens, for all elections of a process together.",
	{results.Cost, "postgres", "handover"}:                                             notified,
	{results.Cost, "postgres", "handover and one TTL after it"}:                        notified + " " + polledInStep,
	{results.Cost, "dynamodb", "waiting for one TTL"}:                                  polledInStep + " dynamolock's waiters read every second whatever the TTL: with one of 15 s they read 15 times in it, ours 3 to 7 times.",
	{results.Cost, "dynamodb", "handover"}:                                             polledHandover,
	{results.Cost, "dynamodb", "handover and one TTL after it"}:                        polledHandover,
	{results.Handover, "", "from resign to the successor knowing"}:                     "A waiter that sees a release waits for a random time first, up to J (10 round trips, at least 5 ms and at most 250 ms), so that of many a few write and the others see it in time: without, most of 50 would. etcd's and ZooKeeper's queues wake the next in line alone. It would take a queue of our own in every store, and a waiter in it who has died would have to be waited for, a TTL each.",
	{results.Handover, "dynamodb", "from resign to the successor knowing"}:             "DynamoDB pushes nothing, so both poll: ours in each renewal interval of 0.3 TTL, dynamolock every second whatever the TTL. RenewEvery sets it.",
	{results.Takeover, "", "takeover after kill -9"}:                                   afterC,
	{results.Overlap, "", "cut: from the cut until the successor believes"}:            afterC,
	{results.Overlap, "", "slow, then cut: from the cut until the successor believes"}: afterC,

	{results.Scale, "", "winning all of them, 64 at a time"}:          "A first acquisition reads, and then writes; nothing is written on a guess. These are few milliseconds for all of them, and vary from run to run.",
	{results.Scale, "", "goroutines per further election"}:            "A lease has a goroutine that keeps it, so that what hangs in one holds up no other; and with ZooKeeper one more that watches the leader's node. Elections of the others that have none hang on one session or one loop: they are lost together, or late together.",
	{results.Scale, "", "memory per further election"}:                "It is the stack of that goroutine for the most part, and then the record, the timers and the lease. The goal is 16 KB, met with 1,000 elections and more; with 100 it counts that the stacks of some that have ended are kept for the next. The others keep a name and a number, because the hold is their session's.",
	{results.Scale, "", "goroutines with one election"}:               "They are the client's, and the one that keeps the lease.",
	{results.Scale, "", "memory with one election"}:                   "It is what the store's client makes when it connects, which is the same for all libraries within what a collection of garbage leaves, and for PostgreSQL another driver than the peer's.",
	{results.Scale, "", "requests to hold all of them"}:               "A session's keep-alive holds everything that hangs on it, and loses everything with it, whatever else the store does; ours renews each record by itself, a hundred in a request. It would take the store's lease as evidence, which etcd and ZooKeeper were measured to break in their own failovers.",
	{results.Scale, "", "bytes to hold all of them"}:                  "Each record is written in each interval, with what it is compared to; see the rows of holding. A session's keep-alive says nothing of the elections that hang on it.",
	{results.Scale, "dynamodb", "connections"}:                        "At most 64, over HTTP/1.1 on purpose, so that one that has gone dark holds up one request; renewals of many elections go side by side, where dynamolock makes one after the other, and those behind one that hangs are late.",
	{results.Scale, "postgres", "connections"}:                        "A pool of up to four connections and no more, however many elections.",
	{results.Check, "", "one call"}:                                   checkReadsClocks,
	{results.Check, "", "one call, as a multiple of time.Now"}:        checkReadsClocks,
	{results.Check, "", "the store hangs: one call, timed by itself"}: checkReadsClocks,
}

const (
	afterC         = "A successor of ours waits for C, 1.1 TTL, from when it first saw the last renewal, so that it comes after the old leader has stopped believing, whatever the two clocks do and however late the renewal was seen; the others end a hold after one TTL, and had two leaders in the table of overlaps, or look only now and then, and are later in the worst case that their rules allow. A smaller ClockDrift makes it shorter."
	firstRead      = "Opening reads the record once, so that a wrong URL, a missing table or a right that lacks shows at once and not in the first campaign, which reads again. Without it a process would make one request less."
	wholeRecord    = "A record has what a successor, an operator and the resource need: holder, token, times, the attempt of the writer, a value. It is written whole each time, and compared with all that identifies the one before, which is how an answer that was lost can be read back. A session's keep-alive, or a counter, is shorter and can do none of it."
	pushedRenewals = "etcd pushes each renewal to each waiter, with the record: that is how it knows, without a request, when the leader was last heard of. A waiter in etcd's own queue only keeps its session alive, with requests, and does not know whether the leader is well."
	everyoneIsTold = wholeRecord + " And all waiters are told of the release and of the new leader; in etcd's own queue one is, of the release alone."
	eventsAreEmpty = "ZooKeeper's events do not hold what has changed, so each waiter reads after each one, the renewals included: that is how it knows when the leader was last heard of, and who leads. In the queue of a lock each waits for the one before it and knows neither. It would take events with content, which ZooKeeper does not have."
	polledInStep   = "A waiter reads once in each renewal interval, 0.3 TTL, just after the renewal: that is what brings the takeover near 1.1 TTL after the last one, where a waiter that looks once in a TTL may need two."
	notified       = "A release and a new leader are notified to all waiters, who then read: anybody who may connect to the database can send a notification, so what it says is not believed. pglock's waiters are not told and come up to a TTL later."
	polledHandover = "A waiter reads in step with the renewals, sees the release, and reads again before it writes, since others may have been quicker, of whom nothing tells it."

	checkReadsClocks = "It asks the clocks whether the time is over, the one that goes on during a suspend among them where they disagree, so that the answer is right also when nothing in this process has run for a while. A flag that somebody else sets is read in less, and is as old as the one who sets it is late: after a pause of the process, or while a request hangs."
)

// notCompared are the cases in which less is not better, and why.
var notCompared = map[place]string{
	{results.Overlap, "", "cut: from the cut until the old leader no longer believes"}:            "it is too late only after the successor",
	{results.Overlap, "", "slow, then cut: from the cut until the old leader no longer believes"}: "it is too late only after the successor",
	{results.Takeover, "", takeoverBounds}:                                                        "it is a range and was not measured",
}

// A deed is what a library does, or does not, in a case.
type deed struct{ subject, what, library string }

// notTheSame are cases in which a peer does less than the case asks for, so that
// less is not better, and why. They are no measure for ours.
var notTheSame = map[deed]string{
	{results.Cost, "resign", "client-go"}: "it tells the store nothing, and a successor waits as after a crash",
}

// takeoverBounds is a case whose two values are bounds, without a median.
const takeoverBounds = "takeover after kill -9, what its rules allow"

// reason returns the reason for a row, empty if there is none.
func reason(r *row) string {
	if why := reasons[place{r.subject, r.store, r.what}]; why != "" {
		return why
	}
	return reasons[place{r.subject, "", r.what}]
}
