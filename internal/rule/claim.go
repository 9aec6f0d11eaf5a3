package rule

import "slices"

// A claim answers one question: if the store shows this process's latest acquisition,
// may the process believe it, and may it take the record at once when the acquisition is
// over?
//
// Only one version of a record comes back: "there is no record". So a creation that was
// on its way all the time can be applied after other records have come and gone, and the
// holder of one of them may still lead. The store then shows an acquisition that this
// process had given up, or a lease that it had lost.
type claim struct {
	nonce   string
	creates bool // the acquisition replaces "there is no record"
	state   claimState

	// earlier are the nonces of acquisitions before it that are over: a record may still show
	// one of them, because the store applies their writes late, in place of this one's.
	earlier []string
}

// mostEarlier bounds what a process remembers. What it has forgotten counts as another's.
const mostEarlier = 8

type claimState uint8

const (
	trying    claimState = iota // under way or held, and nothing speaks against it; with no nonce, there was none
	doubtful                    // a creation that may be applied at any later time, even after its work has stopped
	contested                   // since Claim another acquisition was seen, or the record went back or vanished
	over                        // its lease is over and its work has stopped, and nothing speaks against it
)

// doubt records that the outcome of a write is unknown.
func (c *claim) doubt() {
	if c.creates && c.state == trying {
		c.state = doubtful
	}
}

// met records which acquisition a record shows.
func (c *claim) met(nonce string) {
	if nonce != c.nonce && !slices.Contains(c.earlier, nonce) {
		c.contest()
	}
}

func (c *claim) contest() { c.state, c.earlier = contested, nil }

// next is the claim of an acquisition that follows this one.
func (c *claim) next(nonce string, creates bool) claim {
	n := claim{nonce: nonce, creates: creates}
	if c.state == over {
		n.earlier = append(c.earlier[max(0, len(c.earlier)+1-mostEarlier):], c.nonce)
	}
	return n
}

// end records that the work has stopped. A doubtful claim stays doubtful.
func (c *claim) end(nonce string) {
	if nonce == c.nonce && c.state == trying {
		c.state = over
	}
}

// believed reports whether the acquisition may lead if the store shows it.
func (c *claim) believed() bool { return c.state == trying || c.state == doubtful }

// over reports whether the acquisition with this nonce is over, so that a record that shows
// it may be taken at once.
func (c *claim) over(nonce string) bool {
	return c.state == over && nonce == c.nonce || slices.Contains(c.earlier, nonce)
}
