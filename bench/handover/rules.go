package handover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The rules of a library, with the settings of package peers and at one TTL, as
// its source has them. Times that the network and the machine take are not in
// them.
type rules struct {
	// Where waiters poll: the longest pause between two tries. 0 where the
	// store tells them.
	poll time.Duration

	// Where the store tells them, and waiters are given the time of a poll all the
	// same: nothing is seen of who waits there.
	told bool

	// Where the store tells them: how many watches or listeners it has, and
	// how many of these are the leader's.
	count   func(context.Context, *stores.Store) (int, error)
	lookOut int

	// How long after that one of the waiters has surely made a bid, where they do,
	// and the leader has renewed since.
	bids time.Duration

	handover string // what a reader must know of the figures
	keeps    string // why Resign does not release, if it does not

	renew            time.Duration // the longest between two renewals
	earliest, latest time.Duration // from the kill to the successor
	why              string
}

// The part of elector's rules that is the same on all stores: its defaults.
const (
	ourJitter = 250 * time.Millisecond // the longest
	ourOffset = 100 * time.Millisecond // the longest, of a waiter that polls
)

// rulesOf returns the rules of a library.
func rulesOf(l peers.Library, ttl time.Duration) (rules, error) {
	name, variant, _ := strings.Cut(l.Name, "/")
	switch {
	case l.Ours():
		return ours(l.Store, ttl)
	case name == "etcd":
		return etcdElection(ttl), nil
	case name == "client-go":
		return clientGo(ttl, strings.Contains(variant, "release")), nil
	case name == "zk-lock":
		return zkLock(ttl), nil
	case name == "pglock":
		return pgLock(ttl), nil
	case name == "dynamolock":
		return dynamoLock(ttl), nil
	case name == "redislock":
		return redisLock(ttl), nil
	case name == "rueidislock":
		return rueidisLock(ttl), nil
	}
	return rules{}, fmt.Errorf("the rules of %s on %s are not known here", l.Name, l.Store)
}

func ours(store string, ttl time.Duration) (rules, error) {
	r := rules{renew: ttl * 9 / 10 / 3} // H/3
	const gives = "a waiter then waits at random for up to 10 times what its reads took (5 ms if that is less, 250 ms if more), so that not all write; then it reads and writes"
	const bids = "the waiter that has made a bid then writes without a read; the others wait until they see it, or for at least 50 ms"
	const counts = "C = 1.1 TTL from after the read that first showed the last renewal, which was sent 0 to 0.3 TTL before the kill; then up to 250 ms at random, a read and a write"
	c := ttl * 11 / 10
	r.earliest, r.latest = c-r.renew, c+ourJitter
	switch store {
	case stores.Etcd:
		r.count, r.bids = etcdWatchers, 2*time.Second+r.renew
		r.handover = "the release is pushed to all waiters; " + bids
		r.why = counts + "; renewals are pushed"
	case stores.NATS:
		r.bids = 2*time.Second + r.renew
		r.poll, r.told = r.renew, true // a consumer that is gone is counted for five seconds more
		r.handover = "the release is pushed to all waiters; " + bids
		r.why = counts + "; renewals are pushed"
	case stores.Kubernetes:
		r.count, r.bids = kubernetesWatches, 2*time.Second+r.renew
		r.handover = "the release is pushed to all waiters; " + bids
		r.why = counts + "; renewals are pushed"
	case stores.ZooKeeper:
		r.bids = 2*time.Second + r.renew // a count of the watches would have those that have yet to fire
		r.handover = "all waiters are told to read; " + bids
		r.why = counts + "; a watch tells of renewals. The session has no part in it"
	case stores.Consul:
		// Consul shows how many blocking queries wait, but ten seconds late: the
		// rounds pause instead, as where waiters poll.
		r.poll = r.renew
		r.bids = 2*time.Second + r.renew
		r.handover = "the blocking query of each waiter returns the release; " + bids
		r.why = counts + "; blocking queries return renewals"
	case stores.Postgres, stores.DynamoDB, stores.GCS, stores.AzureBlob, stores.MySQL, stores.Redis, stores.S3:
		r.latest += r.renew + min(ourOffset, r.renew/10)
		r.why = counts + "; renewals are polled in step with the holder: once their rhythm is known, that is 0.1 TTL after them at most, and an interval of 0.3 TTL and 0.1 s before, of which the latest is"
		if store == stores.Postgres {
			r.count, r.bids = postgresListeners, 2*time.Second+r.renew
			r.handover = "all waiters are notified, and read; " + bids
			break
		}
		r.poll = r.renew + min(ourOffset, r.renew/10)
		if store == stores.Redis {
			r.told, r.bids = true, 2*time.Second+r.renew
			r.handover = "all waiters are told to read; " + bids
			break
		}
		r.handover = "polls: a read in each renewal interval of 0.3 TTL, so up to that later (RenewEvery sets it); " + gives
	default:
		return rules{}, fmt.Errorf("the rules of elector on %s are not known here", store)
	}
	return r, nil
}

// etcdElection: a keep-alive is due a third of the TTL after the last answer,
// and the client looks every 500 ms what is due. The server gives at least a
// second, and 3/2 of its election timeout, rounded up, which is less than the
// TTL here; it looks every 500 ms which leases have run out.
func etcdElection(ttl time.Duration) rules {
	const looks = 500 * time.Millisecond
	r := rules{count: etcdWatchers, renew: ttl/3 + looks}
	r.handover = "the release is pushed to the next in line alone, who then reads"
	r.earliest, r.latest = ttl-r.renew, ttl+looks
	r.why = "the lease runs out a TTL after the last keep-alive, of which one is due every third of it and sent up to 0.5 s later; the server looks every 0.5 s which have run out. TTLs are whole seconds, and at least 1.5 election timeouts"
	return r
}

// zkLock: a ping every third of the session's timeout. The server counts from
// when it came, and expires sessions together once in each tick, those whose
// time was over before it.
func zkLock(ttl time.Duration) rules {
	r := rules{count: zooKeeperWatches, renew: ttl / 3}
	r.handover = "the next in line alone is told, who then reads the list of nodes"
	r.earliest, r.latest = ttl-r.renew, ttl+stores.ZooKeeperTick
	r.why = fmt.Sprintf("the session runs out a TTL after the last ping, one every third of it, rounded up to the server's tickTime of %v", stores.ZooKeeperTick)
	return r
}

// pgLock: a waiter tries at once and then a lease duration after each try. It
// takes what has the same number as at its last try.
func pgLock(ttl time.Duration) rules {
	r := rules{poll: ttl, renew: ttl / 4}
	r.handover = "polls: a waiter tries every lease duration, so up to a TTL later; there is no setting for it but the lease duration, 20 s by default. Do does not tell when its release fails, and then the hold has to run out"
	r.earliest, r.latest = ttl-r.renew, 2*ttl
	r.why = "a waiter takes over at the second try that finds the number of the last heartbeat, tries every TTL, and saw it first up to a TTL after it; the last heartbeat was up to a quarter of the TTL before the kill"
	return r
}

// dynamoLock: a waiter reads once in each refresh period, 1 s unless set. It
// counts from when a read first showed the number, and looks at the next reads
// whether the lease duration has passed.
func dynamoLock(ttl time.Duration) rules {
	const refresh = time.Second
	r := rules{poll: refresh, renew: ttl / 4}
	r.handover = "polls: a waiter reads every refresh period, so up to that later: 1 s here and by default, whatever the lease; WithRefreshPeriod sets it, and waiters cost a read in each"
	r.earliest, r.latest = ttl-r.renew, (ttl+refresh-1)/refresh*refresh+refresh
	r.why = "a TTL from the read that first showed the last heartbeat, up to a refresh period of 1 s after it, and on to the next read; the last heartbeat was up to a quarter of the TTL before the kill"
	return r
}

// redisLock: a waiter tries every 100 ms, and takes what has run out. The server
// counts from when the last refresh came.
func redisLock(ttl time.Duration) rules {
	const retry = 100 * time.Millisecond
	r := rules{poll: retry, renew: ttl / 3}
	r.handover = "polls: a waiter tries every 100 ms, so up to that later, and costs ten requests a second; the pause is its user's choice"
	r.earliest, r.latest = ttl-r.renew, ttl+retry
	r.why = "the key runs out a TTL after the last refresh, of which its user sends one every third of it, and a waiter tries every 100 ms"
	return r
}

// rueidisLock: a waiter has the key tracked (client-side caching), and tries when the
// server reports that it has changed or run out. The server looks ten times in a
// second (hz) which keys have run out.
func rueidisLock(ttl time.Duration) rules {
	const looks = 100 * time.Millisecond
	r := rules{renew: ttl / 2, told: true}
	r.poll = r.renew
	r.handover = "all waiters are told that the key has changed, and each tries to set it"
	r.earliest, r.latest = ttl-r.renew, ttl+looks
	r.why = "the key runs out a TTL after the last extension was sent, by the holder's time of day, and one is sent every half of it; the server looks every 100 ms which keys have run out, and reports that to who waits"
	return r
}

// clientGo: waiters try after each RetryPeriod and up to 1.2 of it more at
// random; leaders renew every RetryPeriod. A waiter compares the record's text,
// in which the time of the renewal has no fractions of a second (that of its own
// LeaseLock too): of several renewals in a second it sees the first.
func clientGo(ttl time.Duration, release bool) rules {
	retry := ttl * 2 / 15
	longest := retry * 22 / 10
	r := rules{poll: longest, renew: retry}
	r.handover = "polls: a waiter tries after RetryPeriod, 2/15 of the TTL as Kubernetes's 2 of 15 s, and up to 1.2 of it more at random, so up to 0.29 TTL later"
	if !release {
		r.keeps = "without ReleaseOnCancel, the default, nothing is released: a successor waits as after a crash, see takeover"
	}
	r.earliest, r.latest = ttl-r.renew-time.Second, ttl+2*longest
	r.why = "a TTL from the read that first showed the last renewal, up to 2.2 RetryPeriod of 2/15 TTL after it, and up to as much to the next try; the last renewal was up to a RetryPeriod before the kill, and looks like one of up to 1 s before, as waiters see the times of renewals in whole seconds"
	return r
}
