package simulation

// A faultKind is something that can go wrong in the random campaign, where each
// is counted: a fault that never happens proves nothing.
type faultKind int

const (
	// Of requests.
	slowRequest faultKind = iota
	slowAnswer
	requestLost
	requestRefused
	answerLost
	answerBroken
	appliedLate
	appliedTwice
	conflictAnswered
	pausedSending
	suspendedSending

	// Of machines, cables and the store.
	nodePaused
	nodeSuspended
	wallForward
	wallBack
	suspendHidden
	rateChanged
	timersHeld
	cutOff
	cutOneWay
	streamBroke
	crashed
	restarted
	recordVanished
	recordRolledBack

	// Of wild runs alone: the record is edited.
	holderEmptied
	ttlLowered
	intervalChanged
	valueChanged
	criticalAdded
	keptAdded
	termAdded
	keptRemoved
	termRemoved
	resignRequested
	resignAsked
	successorNamed
	bidForged
	bidDoubled
	bidStale
	creationAgain
	wallFar

	// Of candidates.
	oneIdentity
	secondElector
	driftsMixed
	ttlsMixed
	unhealthy
	workerStalled
	workerLingered
	workerPanicked

	// Of calls that race with a campaign or a lease.
	triedOnce
	contextEnded
	askedLeader
	observed
	proclaimed
	resigned
	resignedTo
	asked
	prioritySet
	closedAnew
	pausedByHand
	resumedByHand

	faultKinds
)

func (k faultKind) String() string {
	return [...]string{
		"request slow", "answer slow", "request lost", "request refused", "answer lost", "answer broken off",
		"applied late, given up", "applied twice", "own conflict answered", "paused before sending",
		"suspended before sending",

		"node paused", "node suspended", "wall clock forward", "wall clock back",
		"suspended, wall clock back", "clock rate changed", "timers held back", "cut off", "cut off one way",
		"watch broken", "crashed", "restarted", "record vanished", "record rolled back",

		"edited: holder emptied or changed", "edited: TTL lowered", "edited: interval changed", "edited: value changed",
		"edited: critical extension added", "edited: kept extension added", "edited: term extension added",
		"edited: kept extensions removed", "edited: term extensions removed", "word for the leader", "edited: request to resign", "edited: successor", "edited: bid that makes no sense", "edited: bid of the leader, or again", "edited: bid that stood before",
		"created again by a late request", "wall clock set by up to 100 h",

		"one ID for all", "second Elector of a process", "ClockDrift mixed", "TTLs mixed, up to 1:12",
		"Healthy says no", "worker stalls", "worker lingers", "worker panics",

		"TryCampaign", "campaign's context ended", "Leader", "Observe", "Proclaim", "Elector.Resign", "ResignTo", "RequestResign", "SetPriority", "Close, and a new Elector", "Pause", "Resume",
	}[k]
}
