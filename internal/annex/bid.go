package annex

import (
	"strconv"

	"github.com/elector-go/elector/backends"
)

// BidName is the extension with the bid of the candidate that should lead next.
const BidName = "t_bid"

// A Bid is a candidate that should lead next. In the record of a leader it is the
// highest bid so far; in the vacancy after it, that candidate tries before the others.
type Bid struct {
	Rank  int64 // 0 for a volunteer, then Options.Priority, then Named
	ID    string
	Nonce string // random, so that no state of the record comes back
}

// Named is the rank of a candidate that the leader or a request to resign named: above
// all that candidates give themselves.
const Named = 1 << 31

// None reports whether there is no bid.
func (b Bid) None() bool { return b.ID == "" }

// String returns the value of the extension.
func (b Bid) String() string { return Join(strconv.FormatInt(b.Rank, 10), b.Nonce, b.ID) }

// Into returns x with the bid in place of the one that it has. One without an ID
// withdraws that.
func (b Bid) Into(x backends.Extensions) (backends.Extensions, error) {
	return x.With(BidName, b.String())
}

// bidOf returns the bid that a record has.
func bidOf(r backends.Record) Bid {
	value, _ := r.Extensions.Get(BidName)
	f := Split(value, 3)
	rank, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || rank < 0 || rank > Named || CheckID(f[2]) != nil {
		return Bid{}
	}
	return Bid{rank, f[2], f[1]}
}
