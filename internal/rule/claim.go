package rule

import (
	"time"

	"github.com/elector-go/elector/backends"
)

// A claim answers one question: if the store shows this process's latest acquisition,
// may the process believe it, and may it retake the record when the work is over?
//
// Only one version of a record comes back: "there is no record". So a creation that was
// on its way all the time can be applied after other records have come and gone, and the
// holder of one of them may still lead. The store then shows an acquisition that this
// process had given up, or a lease that it had lost.
type claim struct {
	nonce   string
	creates bool // the acquisition replaces "there is no record"
	state   claimState
	until   time.Duration // before, only a hand can have replaced the record; 0: not known
	renewed uint64        // number of the latest renewal that was seen before until; first that of the acquisition
	anew    bool          // contested since that was seen
}

type claimState uint8

const (
	trying    claimState = iota // under way or held, and nothing speaks against it; with no nonce, there was none
	doubtful                    // a creation that may be applied at any later time, even after its work has stopped
	contested                   // since Claim another acquisition was seen, or the record went back, vanished or was put back
	abandoned                   // its work has stopped, and nothing speaks against it
)

// doubt records that the outcome of a write is unknown.
func (c *claim) doubt() {
	if c.creates && c.state == trying {
		c.state = doubtful
	}
}

// met records which acquisition a record shows.
func (c *claim) met(nonce string) {
	if nonce != c.nonce {
		c.contest()
	}
}

func (c *claim) contest() { c.state, c.anew = contested, true }

// abandon records that the work is over. A doubtful claim stays doubtful.
func (c *claim) abandon(nonce string) {
	if nonce == c.nonce && c.state == trying {
		c.state = abandoned
	}
}

// shown records which attempt a record shows. A renewal that is seen for the first time has
// replaced this process's own record: what spoke against that before counts no more.
func (c *claim) shown(a backends.Attempt, now time.Duration) {
	if a.Nonce == c.nonce && a.Sequence > c.renewed && now < c.until {
		c.renewed, c.anew = a.Sequence, false
	}
}

// lapsed reports whether the nonce is that of the acquisition, and another process may have
// replaced its record since.
func (c *claim) lapsed(nonce string, now time.Duration) bool {
	return c.nonce == nonce && c.until != 0 && now >= c.until
}

// believed reports whether the acquisition may lead if the store shows it.
func (c *claim) believed() bool { return c.state == trying || c.state == doubtful }

// retakes reports whether a record that shows the acquisition may be retaken at once.
func (c *claim) retakes(nonce string) bool { return c.state == abandoned && nonce == c.nonce }
