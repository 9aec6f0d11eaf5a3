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

	{results.Cost, "", "uncontended acquire"}:    wholeRecord,
	{results.Cost, "", "holding for one TTL"}:    wholeRecord,
	{results.Cost, "", "resign"}:                 wholeRecord,
	{results.Cost, "", "closing after a resign"}: "Chance: both close the same client of the store, which now and then sends one frame more.",

	{results.Cost, "etcd", "waiting for one TTL"}:           "etcd pushes each renewal to each waiter, with the record: so it knows without a request when the leader was last heard of. A waiter in etcd's own queue keeps its session alive, with requests, and does not know whether the leader is well. " + apartFromRenewals,
	{results.Cost, "etcd", "observing for one TTL"}:         "etcd pushes each renewal with the record, so an observer knows without a request when the leader was last heard of. etcd's Observe sees new leaders and values only; its bytes are the keep-alives of the session that its API wants. " + apartFromRenewals,
	{results.Cost, "etcd", "handover"}:                      everyoneIsTold,
	{results.Cost, "etcd", "handover and one TTL after it"}: everyoneIsTold,

	{results.Cost, "zookeeper", "uncontended acquire"}:           "A read is a sync and then a get, since a server may lag behind. The write changes the record, checks that no other one was made in its place, and makes the leader's node. Without the sync it would be two requests, as the lock's: a server that lags would then be asked, and its answer refused at the write. Fewer bytes would take a record with less in it.",
	{results.Cost, "zookeeper", "holding for one TTL"}:           "The record is written every 0.3 TTL, 3 or 4 times in one, by a multi that checks more than a ping of 32 bytes does; a lock pings every third of a TTL and writes nothing. With RenewEvery a third of the TTL it would be level in requests. Fewer bytes would take the session as the lease: a holder of zk-lock believed for more than 12 s after a successor led, see the table of two leaders.",
	{results.Cost, "zookeeper", "waiting for one TTL"}:           eventsAreEmpty,
	{results.Cost, "zookeeper", "handover"}:                      eventsAreEmpty,
	{results.Cost, "zookeeper", "handover and one TTL after it"}: eventsAreEmpty,

	{results.Cost, "postgres", "waiting for one TTL"}:           polledInStep + " One more connection, beside the pool's, listens for all elections of a process together; listen=false saves it, and a release is then seen at the next read.",
	{results.Cost, "postgres", "handover"}:                      notified,
	{results.Cost, "postgres", "handover and one TTL after it"}: notified + " " + polledInStep,

	{results.Cost, "dynamodb", "waiting for one TTL"}:           polledInStep + " dynamolock's waiters read every second unless WithRefreshPeriod says otherwise: at this TTL that is fewer reads, and with a long one more.",
	{results.Cost, "dynamodb", "handover"}:                      polledHandover,
	{results.Cost, "dynamodb", "handover and one TTL after it"}: polledHandover + " " + polledInStep,

	{results.Cost, "kubernetes", "uncontended acquire"}:           wholeLease,
	{results.Cost, "kubernetes", "holding for one TTL"}:           wholeLease,
	{results.Cost, "kubernetes", "resign"}:                        wholeLease,
	{results.Cost, "kubernetes", "waiting for one TTL"}:           "Each renewal is pushed to each waiter, with the Lease: a waiter knows without a request when the leader was last heard of. Each watch has a connection of its own here, where TLS is taken off; with TLS the watches of a process share one, over HTTP/2. client-go's waiters poll.",
	{results.Cost, "kubernetes", "handover"}:                      leaseIsPushed,
	{results.Cost, "kubernetes", "handover and one TTL after it"}: leaseIsPushed,

	{results.Cost, "redis", "opening and first acquire"}:     asksRedis,
	{results.Cost, "redis", "opening"}:                       asksRedis,
	{results.Cost, "redis", "uncontended acquire"}:           "A read, which is an INFO and a GET in one pipeline, and then a script that compares the whole record and writes the next one. INFO shows the server's role and replicas. A lock of the others is a key that is set if it is missing, in one request, with a random value and without a token.",
	{results.Cost, "redis", "holding for one TTL"}:           "The record is written every 0.3 TTL, 3 or 4 times in one, whole, with the one before to compare with. rueidislock extends every half of its validity, and the user of redislock as often as he likes, here every third of the TTL; both send a name and a random value.",
	{results.Cost, "redis", "waiting for one TTL"}:           listensOnRedis,
	{results.Cost, "redis", "handover"}:                      toldOnRedis,
	{results.Cost, "redis", "handover and one TTL after it"}: toldOnRedis + " " + listensOnRedis,

	{results.Handover, "", "from resign to the successor knowing"}:          "A waiter that sees a release waits at random first, up to J: ten times what its own last reads took, at least 5 and at most 250 ms. Then it reads, and writes. So few of many write.",
	{results.Handover, "etcd", "from resign to the successor knowing"}:      "Both need two requests, whatever the number of waiters. Here both are writes, which etcd syncs to the disk: the successor's write makes its token. In etcd's own queue the release is a write, and the successor reads. The release is also pushed to all waiters, with the record; of many in one process the successor gets its turn among them. It would take a successor that leads without a write of its own.",
	{results.Handover, "zookeeper", "from resign to the successor knowing"}: "The release and the acquisition are writes, which ZooKeeper syncs to the disk, and between them the successor reads, with a sync, because an event does not hold what has changed. Every waiter does. In the queue of a lock one waiter is told, who lists the nodes and writes nothing. It would take a successor that leads without a write of its own, and events with content.",

	{results.Handover, "redis", "from resign to the successor knowing"}: "The release and the acquisition are writes, which Redis syncs to the disk; a round trip here is a read, from memory. Between them a waiter waits at random for up to J, so that not all write, or has made a bid and writes at once. All waiters of rueidislock write at once, without a read. Of 50 waiters of redislock that try every 100 ms one comes every 2 ms, at 500 requests a second.",

	{results.Takeover, "", "takeover after kill -9"}:                                            afterC,
	{results.Takeover, "etcd", "takeover after kill -9"}:                                        afterC + withEtcd,
	{results.Takeover, "zookeeper", "takeover after kill -9"}:                                   afterC + withZooKeeper,
	{results.Takeover, "dynamodb", "takeover after kill -9"}:                                    afterC + withDynamoDB,
	{results.Takeover, "redis", "takeover after kill -9"}:                                       afterC + " Redis ends a lock of the others one TTL after its last extension, and they have no token that would stop a holder which was paused.",
	{results.Overlap, "", "cut: from the cut until the successor believes"}:                     afterC,
	{results.Overlap, "etcd", "cut: from the cut until the successor believes"}:                 afterC + withEtcd,
	{results.Overlap, "zookeeper", "cut: from the cut until the successor believes"}:            afterC + withZooKeeper,
	{results.Overlap, "dynamodb", "cut: from the cut until the successor believes"}:             afterC + withDynamoDB,
	{results.Overlap, "", "slow, then cut: from the cut until the successor believes"}:          afterC,
	{results.Overlap, "etcd", "slow, then cut: from the cut until the successor believes"}:      afterC + withEtcd,
	{results.Overlap, "zookeeper", "slow, then cut: from the cut until the successor believes"}: afterC + withZooKeeper,
	{results.Overlap, "dynamodb", "slow, then cut: from the cut until the successor believes"}:  afterC + withDynamoDB,

	{results.Scale, "", "winning all of them, 64 at a time"}:       "An acquisition reads and then writes, three requests on ZooKeeper; etcd's Election and the lock write first. It is one run each, and varies from run to run. It would take a first write on a guess, which is refused wherever there is a record.",
	{results.Scale, "", "goroutines with one election"}:            "Beside those of the client there are the goroutine that is in Run, the one that keeps the lease and, on ZooKeeper, one that watches the leader's node.",
	{results.Scale, "", "goroutines per further election"}:         "The user has one goroutine, in Run, and a lease another one that keeps it, so that what hangs in one holds up no other; on ZooKeeper one more watches the leader's node. Fewer would take one loop for all leases, as the session of etcd's Election and of the lock has.",
	{results.Scale, "dynamodb", "goroutines per further election"}: "The user has one goroutine, in Run, a lease another one that keeps it, and each connection of the client two. dynamolock has as many workers as processors, which go through a list; a heartbeat that hangs holds up a part of the others for up to a heartbeat period.",
	{results.Scale, "", "memory per further election"}:             "More than half of it are the stacks of its goroutines, of which one is the user's own, in Run; the rest are the record, timers, contexts and the lease. With 100 elections the stacks of goroutines that have ended, and connections, count too. Elections of a session (etcd, zk-lock) need a name and a number each, those of dynamolock an entry of a list. Less would take one loop for all leases, in which one that hangs holds up the others.",
	{results.Scale, "", "requests to hold all of them"}:            "A session's keep-alive holds everything that hangs on it, however many, and loses it together. Here each election has its renewal, and up to a hundred of them share a request; on ZooKeeper the session's pings come on top, one in 10 s. It would take the store's lease as evidence: both stores were measured to acknowledge keep-alives of leases that were about to vanish, see [peers.md](../docs/peers.md).",
	{results.Scale, "", "bytes to hold all of them"}:               "Each record is written in each interval, with the one before to compare with, see the rows of holding; a session's keep-alive says nothing of the elections that hang on it. Comparing with a revision would save the second one.",
	{results.Scale, "postgres", "bytes to hold all of them"}:       "pglock writes a number in each heartbeat, see the rows of holding. With 100 elections and more ours sends less.",
	{results.Scale, "kubernetes", "bytes to hold all of them"}:     wholeLease,
	{results.Scale, "redis", "connections"}:                        "At most 8, kept for a minute once as many requests were under way, so that one that has gone dark holds up one request. rueidislock sends everything over one connection.",
	{results.Scale, "kubernetes", "connections"}:                   "At most 32, over HTTP/1.1, so that one that has gone dark holds up one request, and each lease renews by itself. client-go's client has as many as it needs at once, over HTTP/1.1 here and one HTTP/2 connection with TLS. A lower bound would be level; renewals would then wait for each other.",
	{results.Scale, "dynamodb", "connections"}:                     "At most 64, over HTTP/1.1 on purpose, so that one that has gone dark holds up one request, and each lease renews by itself. dynamolock renews with as many workers as the process has processors. A lower bound would be level; renewals would then wait for each other.",

	{results.Check, "", "one call"}:                                    checkReadsClocks,
	{results.Check, "", "one call, as a multiple of time.Now"}:         checkReadsClocks,
	{results.Check, "", "the store hangs: one call, timed by itself"}:  checkReadsClocks,
	{results.Check, "dynamodb", "one call"}:                            checkReadsMoreClocks,
	{results.Check, "dynamodb", "one call, as a multiple of time.Now"}: checkReadsMoreClocks,
}

// What stands in more than one place.
const (
	firstRead = "The backend first asks whether the store can be used (and on PostgreSQL and DynamoDB whether the table fits), and then the election's record is read once, so that a missing right, or something foreign in its place, shows when a service starts and not in its first campaign. Without that read it is one request fewer, on ZooKeeper two; without the store's own check nothing would be left, and a wrong setting would show in the campaign."

	wholeRecord = "The record holds the holder, its token, the TTL, the attempt of the writer and a value. Each write sends all of it, and the one before to compare with: a revision or a version number would do, but comes back when a backup is restored. The attempt is how a write whose answer was lost is found. Others keep less: a value under a session (etcd), a number and an owner (pglock, dynamolock). Comparing with a revision, or with the attempt alone as DynamoDB does here, would save etcd and PostgreSQL the second record, at the price of restored backups and of changes by hand."

	wholeLease = "Besides what kubectl shows, which client-go's Lease has too, the Lease holds the record in an annotation: holder, token, TTL, the attempt of the writer and a value. The attempt is how a write whose answer was lost is found. The API server also returns the whole object after each write, and keeps a list of who wrote which field. With client-go's five fields alone there would be no token."

	leaseIsPushed = "The release and the new leader are pushed to all waiters, each with the Lease, which is longer than client-go's; who takes over reads before it writes. client-go's waiters poll, and those that have not polled yet have sent nothing: they learn of it up to 2.2 RetryPeriod later."

	asksRedis = "Opening asks the server for its role, its replicas and its settings (what it syncs, whether it evicts), since one that loses acknowledged writes is refused, and then reads the election's record once. The locks ask nothing, and also run on a server that forgets what it acknowledged."

	listensOnRedis = "A waiter reads once in each renewal interval, or more often while it learns the holder's rhythm, and each read is a GET behind an INFO. One more connection, beside the pool's, listens for all elections of a process. Messages of Redis may be lost, so they save no read. Waiters of rueidislock rest on the server's reports alone: they try when the key has changed, as it does with each extension."

	toldOnRedis = "All waiters learn of the release, and read, each by a GET behind an INFO; one writes. A message only has the election's name, since everybody who may publish can send one. The waiters of rueidislock try to set the key instead of reading it, one request each. Those of redislock are not told: only who happens to poll has sent something."

	apartFromRenewals = "To be shorter, renewals would have to go to a key that nobody watches, and a waiter could not tell a dead leader from a quiet one without etcd's own leases."

	everyoneIsTold = "All waiters see the release and the new leader, each with the record, and one of them makes a bid. In etcd's own queue one waiter sees the release, and nothing else. The requests are level; fewer bytes would take waiters that do not know who leads."

	eventsAreEmpty = "ZooKeeper's events do not hold what has changed, so each waiter reads after each one, the renewals included: so it knows when the leader was last heard of, and who leads. In the queue of a lock each waits for the one before it, and knows neither. It would take events with content, which ZooKeeper does not have."

	polledInStep = "A waiter reads once in each renewal interval of 0.3 TTL, now and then twice, just after the renewal, so that its takeover comes near 1.1 TTL after the last one; one that looks once in a TTL may come two TTLs after it. A longer RenewEvery means fewer reads."

	notified = "A release and a new leader are notified to all waiters, who then read: anybody who may connect to the database can send a notification, so what it says is not believed. The successor reads once and writes. The bytes are those of the record. pglock's waiters are not told, and come up to a TTL later. It would take notifications that can be believed, or as much patience."

	polledHandover = "A waiter sees the release at a read in step with the renewals, and reads again before it writes, since others may have been quicker, of whom nothing tells it. Without the second read it would be level with one waiter; with more, writes would be refused, and charged."

	afterC        = "A successor of ours waits for C = TTL·(1+ClockDrift), 1.1 TTL, from when it first saw the last renewal, and a leader stops at 0.9 TTL: so they do not overlap while the rates of their clocks differ by less. A ClockDrift of 1 % instead of 10 would take off 0.09 TTL."
	withEtcd      = " etcd's Election, and client-go in most settings, end a hold after one TTL and had two leaders."
	withZooKeeper = " zk-lock had two leaders, since it does not notice; zk-lock/careful stops at the first disconnection, and so loses office each time that a connection breaks for a moment."
	withDynamoDB  = " dynamolock had no two leaders either: both sides count one TTL, with no room for clocks that differ."

	checkReadsClocks = "Check compares the clocks with the end of the lease: the monotonic one and the time of day, and where they disagree the boot-time clock, which goes on during a suspend. So it is right also when nothing in this process has run for a while. The others read a flag that somebody else sets, which is as late as that somebody. To be level, Check would have to read such a flag, and be wrong after a pause."

	checkReadsMoreClocks = "dynamolock asks a clock too, the monotonic one alone, which stands still on Linux while the machine is suspended, and under a lock that its heartbeat holds: see the calls while the store hangs. Without the time of day ours would be level, and not see a suspend."
)

// notCompared are the cases in which less is not better, and why.
var notCompared = map[place]string{
	{results.Overlap, "", "cut: from the cut until the old leader no longer believes"}:            "it is too late only after the successor",
	{results.Overlap, "", "slow, then cut: from the cut until the old leader no longer believes"}: "it is too late only after the successor",
	{results.Scale, "", "memory with one election"}:                                               "it is one process each, of which a collection of garbage leaves tens of kilobytes more or less",
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
