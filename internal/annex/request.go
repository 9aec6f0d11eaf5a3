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
	To       string // ID of the candidate that should lead next; may be empty
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
	return Join(strconv.FormatUint(q.Token, 10), q.Nonce, q.To, Legible(q.By), mark)
}

// RequestOf returns the request that a record has for its present leader. One for
// another token is ignored.
func RequestOf(r backends.Record) Request {
	value, ok := r.Extensions.Get(RequestName)
	if !ok || !r.Exists() || r.Vacant() {
		return Request{}
	}
	f := Split(value, 5)
	if f[0] != strconv.FormatUint(r.Token, 10) || f[2] != "" && CheckID(f[2]) != nil || !shown(f[3]) {
		return Request{}
	}
	return Request{r.Token, f[1], f[2], Legible(f[3]), f[4] == drainingMark}
}

// Into returns x with the request. Where there is no room it empties the history and
// then the bid, but keeps their names: who writes into the record of another process
// removes none.
func (q Request) Into(x backends.Extensions) (backends.Extensions, error) {
	with, err := x.With(RequestName, q.String())
	for _, name := range []string{HistoryName, BidName} {
		if _, has := x.Get(name); err == nil || !has {
			continue
		}
		if x, err = x.With(name, ""); err == nil {
			with, err = x.With(RequestName, q.String())
		}
	}
	return with, err
}
