package rule

import (
	"time"

	"github.com/elector-go/elector/backends"
)

// A Step is one that a process has taken in an election, for a replay through the
// specification: spec/steps.pml has those of the claim, of the lease and of its release.
// "see" is another: a state of the record was shown.
type Step struct {
	Name   string
	Nonce  string          // of the acquisition
	Record backends.Record // that was shown, that the acquisition replaces, or that it has made
	Token  uint64          // of the acquisition
	Now    time.Duration
	Until  time.Duration // when the lease is over
	Taken  bool          // it was allowed; a state was believed
}

// report calls Report. The caller holds the mutex, so that the steps come in their order.
func (v *View) report(s Step) {
	if v.Report != nil {
		v.Report(s)
	}
}

// Take takes a step that is no conclusion from the record, in the order of all steps, if
// take returns true. It returns what take returns.
func (v *View) Take(s Step, take func() bool) bool {
	if v.Report == nil {
		return take()
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if s.Taken = take(); s.Taken {
		v.report(s)
	}
	return s.Taken
}
