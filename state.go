package elector

// A CandidateState is what a candidate does at one moment: see Elector.State. The state of the
// election itself is in Leader.
type CandidateState string

// The states of a candidate.
const (
	Idle         CandidateState = "idle"          // it neither leads nor campaigns; it may observe
	Campaigning  CandidateState = "campaigning"   // it tries to lead, or cannot see who does
	Refused      CandidateState = "refused"       // the store refuses what it tries, which passes only when somebody changes something; it tries again
	Waiting      CandidateState = "waiting"       // another candidate leads, or may still lead
	StandingBack CandidateState = "standing back" // it was requested to resign, or deposed, and waits until another one has led
	Paused       CandidateState = "paused"        // it waits for the end of a pause
	Leading      CandidateState = "leading"
	Draining     CandidateState = "draining" // it leads, and its worker was told to stop
	Stopping     CandidateState = "stopping" // it leads no more, and the worker of Run has not returned yet
)

// State returns what this candidate does now, for a status page: display it, and decide
// nothing by it. It asks no store and does not block.
func (e *Elector) State() CandidateState {
	if e.backend == nil {
		return Idle
	}
	e.mutex.Lock()
	busy := e.busy
	e.mutex.Unlock()
	campaigns := e.campaigns.Load() // before the lease that ends it
	if l := e.current.Load(); l != nil && l.valid() == nil {
		if l.status.Load().phase == draining {
			return Draining
		}
		return Leading
	}
	s, now := e.view.Snapshot(), e.now()
	switch {
	case !busy:
		return Idle
	case !campaigns:
		return Stopping
	case e.refused.Load():
		return Refused
	case e.pausedUntil(s) > now:
		return Paused
	case e.standsBack(s):
		return StandingBack
	case s.Any && s.Free > now:
		return Waiting
	}
	return Campaigning
}
