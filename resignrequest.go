package elector

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/internal/store"
	"github.com/elector-go/elector/operate"
)

// RequestResign implements operate.Operator.
func (o operator) RequestResign(ctx context.Context, r operate.ResignRequest) error {
	e := o.e
	if err := e.beginWriting(ctx); err != nil {
		return e.fail("request", err)
	}
	defer e.active.Done()
	var err error
	if r.To != "" {
		err = checkSuccessor(r.To)
	}
	if r.Token > uint64(MaxToken) {
		err = fmt.Errorf("%w: %d is not a fencing token", ErrInvalid, r.Token)
	}
	if err != nil {
		return e.fail("request", err)
	}
	ctx, cancel := e.joined(ctx)
	defer cancel()
	place := e.reading()
	defer place.Leave()
	w := e.watch(ctx, store.Look, "request to resign", place)
	defer w.cancel()
	p := pending{e: e, w: w, token: Token(r.Token), to: r.To, nonce: e.newNonce()}
	err = p.settle(ctx)
	if err != nil && ctx.Err() != nil {
		err = p.late(ctx)
	}
	return e.fail("request", err)
}

// A pending is a request to resign that a process waits for.
type pending struct {
	e     *Elector
	w     *watcher
	token Token
	to    string
	nonce string

	found bool             // the record had the request, or one that it joins
	at    time.Duration    // monotonic, when it was first seen
	with  backends.Attempt // of the leader then
	seen  backends.Record  // the latest state with the request
	fault *failure         // of the last write, if that failed
	taken int              // requests that the store took, and the record then did not have
}

// mostTaken is after how many such requests RequestResign returns.
const mostTaken = 5

// settle sends the request, unless one is there, and waits for its outcome.
func (p *pending) settle(ctx context.Context) error {
	e := p.e
	backoff := e.newBackoff("request to resign")
	defer backoff.close()
	err := p.w.readNow(ctx)
	for first := true; err == nil; first = false {
		r := e.view.Snapshot().Record
		if p.token == 0 {
			p.token = Token(r.Token)
		}
		l, q := e.leader(r), e.annex.Of(r).Request
		switch {
		case first && (l.ID == "" || l.Token != p.token):
			return p.leadsNoMore(r)
		case l.ID == "" || l.Token != p.token:
			return nil
		case l.Lapsed:
			return fmt.Errorf("%w: %q with token %d has not renewed for %v and is gone; a candidate that has watched for as long takes over, if there is one", ErrLost, l.ID, l.Token, l.Unchanged.Round(time.Millisecond))
		case l.ID == p.to:
			return fmt.Errorf("%w: %q leads already", ErrInvalid, p.to)
		case q.Token == 0:
			err = p.send(ctx, r, backoff)
			continue
		case q.Nonce != p.nonce && p.to != "" && p.to != q.To:
			return fmt.Errorf("%w: %q, %s; wait until another candidate leads, and then move the leader again", ErrRequested, q.By, whom(q))
		}
		if !p.found {
			p.found, p.at, p.with = true, e.clock.Now().Mono, r.Attempt
		}
		p.seen = r
		until := e.view.Snapshot().Lapse
		if p.to == e.o.ID && !e.listens { // or it misses its head start
			until = min(until, e.now()+min(interval(r), longestHeadStart)/4)
		}
		changed := false
		if changed, err = p.w.wait(ctx, r.Version, until); err == nil && !changed {
			err = p.w.readNow(ctx) // pushes may be late
		}
	}
	return err
}

// whom returns who should lead next, for an error.
func whom(q annex.Request) string {
	if q.To == "" {
		return "and named no successor"
	}
	return fmt.Sprintf("and named %q", q.To)
}

// leadsNoMore returns the error of a request that comes too late.
func (p *pending) leadsNoMore(r backends.Record) error {
	who := "the election has no leader"
	if !r.Vacant() {
		who = fmt.Sprintf("%q leads with token %d", r.Holder, r.Token)
	}
	if p.token == 0 || r.Vacant() && uint64(p.token) == r.Token {
		return fmt.Errorf("%w: %s", ErrNotLeader, who)
	}
	return fmt.Errorf("%w: the term of token %d is over; %s", ErrNotLeader, p.token, who)
}

// send writes the request into the leader's record. It returns an error that
// trying again cannot help, and pauses after any other.
func (p *pending) send(ctx context.Context, r backends.Record, backoff *backoff) error {
	e := p.e
	if p.taken > 0 {
		err := fmt.Errorf("%w: the store took the request, but the record does not have it: the backend, or another process, drops extensions", ErrMisconfigured)
		p.found, p.fault = false, &failure{refused, err}
		if p.taken == mostTaken || !backoff.pause(ctx, p.fault) {
			return err
		}
	}
	f := e.extend(ctx, r, annex.Request{Token: uint64(p.token), Nonce: p.nonce, To: p.to, By: e.o.ID}.Into)
	if f == nil || f.kind != cancelled {
		p.fault = f
	}
	switch {
	case f == nil:
		p.taken++
		return nil
	case f.permanent(), f.kind == holding:
		return f.err
	case f.kind == conflicting:
		if !e.sleep(ctx, e.jitter()) {
			return f.err
		}
	case !backoff.pause(ctx, f):
		return f.err
	}
	return p.w.readNow(ctx)
}

// late returns the error of a request whose context has ended before its outcome:
// what the leader has done meanwhile.
func (p *pending) late(ctx context.Context) error {
	last := p.w.fault
	if last == nil && !p.found {
		last = p.fault
	}
	err := p.e.ended(ctx, last)
	since := (p.e.clock.Now().Mono - p.at).Round(time.Millisecond)
	switch {
	case !p.found:
		return fmt.Errorf("%w; the record was not seen with the request", err)
	case p.e.annex.Of(p.seen).Request.Draining:
		return fmt.Errorf("%w; %q has met the request, and its worker has not returned yet", err, p.seen.Holder)
	case p.seen.Attempt != p.with:
		return fmt.Errorf("%w; %q renews and keeps the request: its version of this library does not know requests; stop that process", err, p.seen.Holder)
	}
	return fmt.Errorf("%w; %q has not renewed in the %v since the request and renews every %v: it hangs, is gone, or has not come to it", err, p.seen.Holder, since, p.seen.RenewEvery)
}
