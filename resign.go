package elector

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/elector-go/elector/backends"
)

// A resignRequest asks the leader with one token to resign. Another process writes
// it into the extension t_request of the leader's record. The leader meets it at
// its next renewal, marks it with the same write, and drains. No candidate ever
// requests by itself.
type resignRequest struct {
	token  Token
	nonce  string // random, so that no state of the record comes back
	to     string // ID of the candidate that should lead next; may be empty
	by     string // ID of the process that asks, for people
	drains bool   // the leader has met it
}

// requestName is the extension with a request to resign.
const requestName = "t_request"

// maxBy bounds the bytes of resignRequest.by.
const maxBy = 64

// The marks of a request have the same length: where there was room for the request
// there is room for the leader's mark.
const (
	drainsMark = "draining"
	asksMark   = "awaiting"
)

// String returns the value of the extension.
func (q resignRequest) String() string {
	state := asksMark
	if q.drains {
		state = drainsMark
	}
	return join(q.token.String(), q.nonce, q.to, q.by, state)
}

// requestOf returns the request that a record has for its present leader, with the
// token 0 if it has none: a request for another token counts for nothing.
func requestOf(r backends.Record) resignRequest {
	value, ok := r.Extensions.Get(requestName)
	if !ok || !r.Exists() || r.Vacant() {
		return resignRequest{}
	}
	f := split(value, 5)
	token, err := ParseToken(f[0])
	if err != nil || uint64(token) != r.Token || f[2] != "" && checkHeir(f[2]) != nil || f[3] != legible(f[3], maxBy) {
		return resignRequest{}
	}
	return resignRequest{token, f[1], f[2], f[3], f[4] == drainsMark}
}

// heed tells the worker to stop if the record, as it was read last, has a request
// for this lease.
func (l *Lease) heed() {
	q := requestOf(l.own.record)
	if q.token == 0 || l.status.Load().why >= requested {
		return
	}
	l.e.log.Info("elector: requested to resign", "token", l.token, "by", q.by, "to", q.to)
	l.drain(requested, fmt.Errorf("%w: %q", ErrRequested, q.by))
}

// marked returns the extensions of the record for its next renewal: a request that
// was met is marked, so that its sender sees that the leader drains.
func (a *acquisition) marked() backends.Extensions {
	x := a.record.Extensions
	q := requestOf(a.record)
	if q.token == 0 || q.drains {
		return x
	}
	q.drains = true
	if with, err := x.With(requestName, q.String()); err == nil {
		return with
	}
	return x // no room: the sender cannot tell
}

// bequeathed returns the extensions of the vacancy that follows the record: what is
// kept, with the end of the term in its history, and the heir. One that the leader
// named comes before one that a request named, and that one before an announced one.
func (a *acquisition) bequeathed() backends.Extensions {
	x, h := a.record.Extensions.Class('k').Without(historyName), heirOf(a.record)
	q, why := requestOf(a.record), a.why
	if q.token != 0 && why == "r" {
		why = "q"
	}
	if q.to != "" {
		h = heir{q.to, named, q.nonce}
	}
	if a.heir != "" {
		h = heir{a.heir, named, a.nonce}
	}
	if h.id != "" {
		if with, err := x.With(heirName, h.String()); err == nil {
			x = with
		}
	}
	return historyOf(a.record).end(a.e.o.ID, a.token, why, a.e.today()).into(x)
}

// ResignTo is Resign, and names the candidate that should lead next, by its
// Options.ID. That candidate tries to lead as soon as it sees the vacancy, and the
// others let it have a head start; if it does not come in time, any of them may
// lead: see Options.Priority. ResignTo returns ErrInvalid if the ID is empty, is
// this candidate's own, is longer than 256 bytes, or is not UTF-8 without NUL; the
// lease then goes on. If the lease goes on, or the store could not be told, a later
// Resign names no candidate.
func (e *Elector) ResignTo(ctx context.Context, id string) error {
	err := checkHeir(id)
	if err == nil && id == e.o.ID {
		err = fmt.Errorf("%w: %q cannot name itself", ErrInvalid, id)
	}
	if err != nil {
		return e.fail("resign", err)
	}
	l := e.current.Load()
	if l == nil {
		return e.Resign(ctx)
	}
	l.heir.Store(&id)
	err = e.Resign(ctx)
	if state, _, _ := l.release.known(); err != nil && (state == failed || l.status.Load().phase == held) {
		l.heir.CompareAndSwap(&id, nil)
	}
	return err
}

// RequestResign asks the leader with the token, in whatever process it runs, to
// resign: to drain its worker as for Resign, to release the election, and to let
// another candidate lead. A token of 0 means the candidate that leads now. A
// request never ends a lease by itself: the leader meets it at its next renewal,
// so that its worker is told to stop up to one of its renewal intervals later.
// Run then campaigns again, but stands back until another candidate leads, for at
// most TTL*(1+ClockDrift). If to is not empty it names the candidate that should
// lead next, as ResignTo does.
//
// RequestResign blocks until the record shows a vacancy or another leader, and
// then returns nil; or until ctx ends, and then returns the cause and what the
// leader was seen to do. The request stays in that case. It returns
//
//   - ErrNotLeader if the leader with that token leads no more, or the election has
//     no leader;
//   - ErrLost if the leader has not renewed for TTL*(1+ClockDrift): it is gone, and a
//     candidate that has watched it for as long takes over without a request;
//   - ErrRequested if to is not empty and another request for this token is pending
//     that names another candidate, or none. Otherwise RequestResign waits for the
//     outcome of that request;
//   - ErrInvalid for an ID that ResignTo refuses or that is the leader's, and for a
//     token above MaxToken;
//   - and the store's errors.
//
// A request costs one read and one write, and the leader two requests. The process
// that calls RequestResign need not be a candidate.
func (e *Elector) RequestResign(ctx context.Context, token Token, to string) error {
	if err := e.begin(ctx); err != nil {
		return e.fail("request", err)
	}
	defer e.active.Done()
	var err error
	if to != "" {
		err = checkHeir(to)
	}
	if token > MaxToken {
		err = fmt.Errorf("%w: %d is not a fencing token", ErrInvalid, token)
	}
	if err != nil {
		return e.fail("request", err)
	}
	ctx, cancel := e.joined(ctx)
	defer cancel()
	loads := loadsOf(e.backend)
	defer loads.leave()
	w := e.watch(ctx, looking, "request to resign", loads)
	defer w.cancel()
	p := pending{e: e, w: w, token: token, to: to, nonce: e.o.newNonce()}
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
}

// settle sends the request, unless one is there, and waits for its outcome.
func (p *pending) settle(ctx context.Context) error {
	e := p.e
	backoff := e.newBackoff("request to resign")
	if err := p.w.readNow(ctx); err != nil {
		return err
	}
	for first := true; ; first = false {
		r := e.view.look().record
		if p.token == 0 {
			p.token = Token(r.Token)
		}
		l, q := e.view.leader(r), requestOf(r)
		switch {
		case first && (l.ID == "" || l.Token != p.token):
			return p.leadsNoMore(r)
		case l.ID == "" || l.Token != p.token:
			return nil
		case l.Lapsed:
			return fmt.Errorf("%w: %q with token %d has not renewed for %v and is gone; a candidate that has watched for as long takes over, if there is one", ErrLost, l.ID, l.Token, l.Unchanged.Round(time.Millisecond))
		case l.ID == p.to:
			return fmt.Errorf("%w: %q leads already", ErrInvalid, p.to)
		case q.token == 0:
			if err := p.send(ctx, r, backoff); err != nil {
				return err
			}
			continue
		case q.nonce != p.nonce && p.to != "" && p.to != q.to:
			return fmt.Errorf("%w: %q, %s; wait until another candidate leads, and then move the leader again", ErrRequested, q.by, q.whom())
		}
		if !p.found {
			p.found, p.at, p.with = true, e.clock.Now().Mono, r.Attempt
		}
		p.seen = r
		changed, err := p.w.wait(ctx, r.Version, e.view.lapses())
		if err == nil && !changed {
			err = p.w.readNow(ctx) // pushes may be late
		}
		if err != nil {
			return err
		}
	}
}

// whom returns who should lead next, for an error.
func (q resignRequest) whom() string {
	if q.to == "" {
		return "and named no successor"
	}
	return fmt.Sprintf("and named %q", q.to)
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
	return fmt.Errorf("%w: the tenure of token %d is over; %s", ErrNotLeader, p.token, who)
}

// send writes the request into the leader's record. It returns an error that
// trying again cannot help, and pauses after any other.
func (p *pending) send(ctx context.Context, r backends.Record, backoff *backoff) error {
	e := p.e
	q := resignRequest{token: p.token, nonce: p.nonce, to: p.to, by: legible(e.o.ID, maxBy)}
	f := e.extend(ctx, r, requestName, q.String())
	if f == nil || f.kind != cancelled {
		p.fault = f
	}
	switch {
	case f == nil:
		return nil
	case f.hopeless(), f.kind == holding:
		return f.err
	case f.kind == conflicting:
		if !e.sleep(ctx, e.jitter()) {
			return f.err
		}
	case !backoff.pause(ctx, f.err):
		return f.err
	}
	return p.w.readNow(ctx)
}

// legible returns at most n bytes of a text, for people: without what a terminal
// does not show.
func legible(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
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
	case requestOf(p.seen).drains:
		return fmt.Errorf("%w; %q has met the request, and its worker has not returned yet", err, p.seen.Holder)
	case p.seen.Attempt != p.with:
		return fmt.Errorf("%w; %q renews and keeps the request: its version of this library does not know requests; stop that process", err, p.seen.Holder)
	}
	return fmt.Errorf("%w; %q has not renewed in the %v since the request and renews every %v: it hangs, is gone, or has not come to it", err, p.seen.Holder, since, p.seen.RenewEvery)
}

// extend writes an extension into the record of a leader, and nothing else.
func (e *Elector) extend(ctx context.Context, r backends.Record, name, value string) *failure {
	if unknown := r.Extensions.Critical(known...); unknown != "" {
		return e.view.heldBy(r)
	}
	next := r
	var err error
	if next.Extensions, err = withRoom(r.Extensions, name, value); err != nil {
		return &failure{refused, fmt.Errorf("the record has no room for %s: %w", name, err)}
	}
	if !e.pace(ctx) {
		return &failure{cancelled, e.ended(ctx, nil)}
	}
	_, f := e.swap(ctx, e.o.RequestTimeout, asking, e.backend.Swap, r, next)
	return f
}

// withRoom returns x with an extension. Where there is no room for a request it
// empties the history and then the heir, but keeps their names: see extended.
func withRoom(x backends.Extensions, name, value string) (backends.Extensions, error) {
	with, err := x.With(name, value)
	for _, less := range []string{historyName, heirName} {
		if _, has := x.Get(less); err == nil || !has || name != requestName {
			continue
		}
		if x, err = x.With(less, ""); err == nil {
			with, err = x.With(name, value)
		}
	}
	return with, err
}
