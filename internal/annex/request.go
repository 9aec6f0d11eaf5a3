package annex

import (
	"strconv"

	"github.com/elector-go/elector/backends"
)

// RequestName is the extension with a request to resign.
const RequestName = "t_request"

// A Request asks the leader with a token to resign. Another process writes it into the
// leader's record. The leader reads it at its next renewal, marks it with the same
// write, and drains.
type Request struct {
	Token    uint64 // 0 if there is no request
	Nonce    string // random, so that no state of the record comes back
	To       string // ID of the candidate that should lead next, a bid of its own; may be empty
	By       string // ID of the requesting process, for people
	Draining bool   // the leader has read it
}

// The marks of a request have the same length: where there was room for the request
// there is room for the leader's mark.
const (
	drainingMark = "draining"
	awaitingMark = "awaiting"
)

// String returns the value of the extension.
func (q Request) String() string {
	mark := awaitingMark
	if q.Draining {
		mark = drainingMark
	}
	return Join(strconv.FormatUint(q.Token, 10), q.Nonce, Legible(q.By), mark)
}

// requestOf returns the request that a record with this bid has for its present leader. One
// for another token is ignored.
func requestOf(r backends.Record, b Bid) Request {
	value, ok := r.Extensions.Get(RequestName)
	if !ok || r.Vacant() {
		return Request{}
	}
	f := Split(value, 4)
	if f[0] != strconv.FormatUint(r.Token, 10) || !shown(f[2]) {
		return Request{}
	}
	q := Request{Token: r.Token, Nonce: f[1], By: Legible(f[2]), Draining: f[3] == drainingMark}
	if b.Rank == Named && b.Nonce == q.Nonce {
		q.To = b.ID
	}
	return q
}

// Into returns x with the request, and with the bid of the candidate that it names. Where
// there is no room it empties the history and then another bid, but keeps their names: a
// process that writes into the record of another one removes none.
func (q Request) Into(x backends.Extensions) (backends.Extensions, error) {
	with, err := q.with(x)
	for _, name := range []string{HistoryName, BidName} {
		if _, has := x.Get(name); err == nil || !has {
			continue
		}
		if x, err = x.With(name, ""); err == nil {
			with, err = q.with(x)
		}
	}
	return with, err
}

func (q Request) with(x backends.Extensions) (backends.Extensions, error) {
	if q.To != "" {
		var err error
		if x, err = (Bid{Named, q.To, q.Nonce}).Into(x); err != nil {
			return x, err
		}
	}
	return x.With(RequestName, q.String())
}
