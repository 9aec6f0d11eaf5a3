package checker

import (
	"maps"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A process is a candidate.
type process struct {
	*simulation
	name     string
	dead     bool
	stopped  bool
	deferred []func() // to be done once it goes on
	network  string   // how it is broken

	seen    simRecord
	any     bool
	since   time.Duration
	held    time.Duration
	last    elector.Token // of the last record seen that was one
	lastTTL time.Duration // of the same
	highest elector.Token
	lease   *simLease
	number  uint64
}

type simLease struct {
	token    elector.Token
	t0       time.Duration
	over     bool
	canceled bool
	record   simRecord
}

// ours reports whether a record is as its holder wrote it.
func (p *process) ours(now, wrote simRecord) bool {
	if p.mutant == adoptsEdits {
		return now.token == wrote.token
	}
	if now.extensions["c_x"] != "" && p.mutant != leadsOnCritical || p.mutant == ownsExtensions && !maps.Equal(now.extensions, wrote.extensions) {
		return false
	}
	return now.holder == wrote.holder && now.token == wrote.token && now.ttl == wrote.ttl && now.value == wrote.value
}

// passedOn returns the extensions that an acquisition or a release leaves.
func (p *process) passedOn(extensions map[string]string) map[string]string {
	passed := maps.Clone(extensions)
	maps.DeleteFunc(passed, func(name, _ string) bool {
		return name[0] == 'k' && p.mutant == dropsKept || name[0] == 't' && p.mutant != keepsTerm || name[0] == 'c'
	})
	return passed
}

// tells tells an event of the process itself. It may be stopped while it does.
func (p *process) tells(e history.Event) {
	e.Candidate = p.name
	if e.Before == 0 {
		e.Before = p.now
	}
	if p.random.IntN(300) == 0 && !p.stopped && !p.dead {
		d := p.between(50*ms, 5*time.Second)
		p.stop(d)
		e.At = p.now + d + p.between(1, time.Microsecond)
		p.at(d, func() { // what a killed process did not come to tell is not told
			if !p.dead {
				p.tell(e)
			}
		})
		return
	}
	p.tell(e)
}

// after does something later, if the process lives and runs then.
func (p *process) after(d time.Duration, do func()) { p.at(d, func() { p.run(do) }) }

func (p *process) run(do func()) {
	switch {
	case p.dead:
	case p.stopped:
		p.deferred = append(p.deferred, do)
	default:
		do()
	}
}

// ask sends a request. done hears whether it was answered in time.
func (p *process) ask(do func(), done func(answered bool)) {
	there, back := p.between(1*ms, 20*ms), p.between(1*ms, 20*ms)
	switch p.network {
	case "latency":
		there += p.between(0, 300*ms)
	case "slow replies":
		back += p.between(0, 250*ms)
		if p.mutant == holdFromResponse {
			back += p.between(800*ms, 1500*ms)
		}
	}
	timeout := rules.Request
	if p.mutant == holdFromResponse {
		timeout = 2 * time.Second // as no candidate counts from when it was sent
	}
	over := false
	finish := func(answered bool) {
		if !over {
			over = true
			done(answered)
		}
	}
	p.at(there, func() {
		if p.network == "cut" || p.network == "lose requests" {
			return
		}
		do()
		p.at(back, func() {
			if p.network != "cut" && p.network != "lose replies" {
				p.run(func() { finish(true) })
			}
		})
	})
	p.after(timeout, func() { finish(false) })
}

// see takes note of a record that was read.
func (p *process) see(r simRecord) {
	if p.any && r.version == p.seen.version {
		return
	}
	if p.last > 0 && (r.version == 0 || r.token < p.last) && p.mutant != vanishedIsVacant && p.mutant != tokenReset {
		p.held = max(p.held, p.now+p.lastTTL/10*11)
	}
	if r.holder != "" && r.holder != p.name && r.holder != p.seen.holder {
		p.tells(history.Event{Kind: history.Waits, Token: r.token, Holder: r.holder})
	}
	if old := p.seen; !p.any || old.holder != r.holder || old.token != r.token || old.sent != r.sent || old.ttl != r.ttl || old.value != r.value {
		p.since = p.now
	}
	p.any, p.seen = true, r
	if r.version != 0 {
		p.last, p.lastTTL, p.highest = r.token, r.ttl, max(p.highest, r.token)
	}
}

func (p *process) claimable() time.Duration {
	if p.seen.extensions["c_x"] != "" && p.mutant != claimsCritical {
		return forever
	}
	if p.seen.holder == "" {
		return p.held
	}
	wait := p.seen.ttl / 10 * 11
	switch p.mutant {
	case earlyTakeover:
		wait = rules.TTL / 2
	case lateTakeover:
		wait = 3 * rules.Wait
	}
	return max(p.held, p.since+wait)
}

func (p *process) load(done func(simRecord, bool)) {
	var r simRecord
	p.ask(func() { r = p.record }, func(ok bool) {
		if ok {
			p.see(r)
		} else {
			p.tells(history.Event{Kind: history.Trouble, Detail: "load: no answer"})
		}
		done(r, ok)
	})
}

// swap replaces a state of the record by another, and reads back if it is not
// told that it has.
func (p *process) swap(prev, next simRecord, done func(now simRecord, ok bool)) {
	won := false
	p.ask(func() {
		if p.record.version == prev.version {
			p.write(next)
			next, won = p.record, true
		}
	}, func(answered bool) {
		if answered && won {
			p.see(next)
			done(next, true)
			return
		}
		if !answered {
			p.tells(history.Event{Kind: history.Trouble, Detail: "swap: no answer"})
		}
		p.load(done)
	})
}

func (p *process) campaign() {
	p.load(func(_ simRecord, ok bool) {
		from := p.claimable()
		switch {
		case !ok:
			p.after(p.between(50*ms, 200*ms), p.campaign)
		case from <= p.now:
			p.after(p.between(1*ms, 200*ms), p.attempt)
		default:
			p.after(min(rules.Renew, max(from-p.now, ms)), p.campaign)
		}
	})
}

func (p *process) attempt() {
	p.load(func(r simRecord, ok bool) {
		if !ok || p.claimable() > p.now || r.version != p.seen.version {
			p.campaign()
			return
		}
		token := max(p.highest+1, elector.Token(1000+p.now/time.Microsecond))
		if p.mutant == tokenReset && r.holder == "" && r.version != 0 {
			token = 1
		}
		if p.mutant == tokenStays && r.version != 0 {
			token = r.token
		}
		next := simRecord{holder: p.name, token: token, sent: p.now, ttl: rules.TTL, extensions: p.passedOn(r.extensions)}
		p.swap(r, next, func(now simRecord, ok bool) {
			mine := ok && p.ours(now, next)
			if mine && p.held > p.now {
				p.tells(history.Event{Kind: history.Discarded, Token: token})
			}
			if !mine || p.now-now.sent >= rules.Hold || p.held > p.now {
				p.campaign()
				return
			}
			p.lease = &simLease{token: token, t0: now.sent, record: now}
			if p.mutant == holdFromResponse {
				p.lease.t0 = p.now
			}
			p.look(history.Acquired, p.lease, 0)
			p.expire(p.lease)
			p.renewAt(p.lease, p.lease.t0+rules.Renew)
			p.work(p.lease)
		})
	})
}

func (p *process) hold() time.Duration {
	if p.mutant == overstays {
		return rules.TTL * 3 / 2
	}
	return rules.Hold
}

func (p *process) look(kind history.Kind, l *simLease, number uint64) bool {
	e := history.Event{Kind: kind, Token: l.token, Number: number}
	e.Valid = !l.over && (p.mutant == timerOnly || p.now-l.t0 < p.hold())
	if e.Valid {
		e.Left = max(0, p.hold()-(p.now-l.t0))
	}
	p.tells(e)
	return e.Valid
}

// expire is the timer that ends a lease.
func (p *process) expire(l *simLease) {
	rest := l.t0 + p.hold() - p.now
	if l.over {
		return
	}
	if rest <= 0 {
		p.end(l, "lost: it was not renewed")
		return
	}
	p.after(rest, func() { p.expire(l) })
}

func (p *process) end(l *simLease, why string) {
	if l.over {
		return
	}
	l.over = true
	cancel := func() { p.tells(history.Event{Kind: history.Canceled, Token: l.token}) }
	switch {
	case p.mutant == lateCancel:
		p.after(500*ms, cancel)
	case !l.canceled:
		p.after(p.between(0, 5*ms), cancel)
	}
	p.tells(history.Event{Kind: history.Ended, Token: l.token, Detail: why})
	if why == "resigned: " {
		return
	}
	p.after(p.between(6*ms, 50*ms), p.campaign)
}

func (p *process) renewAt(l *simLease, when time.Duration) {
	p.after(max(when-p.now, ms), func() {
		if (l.over || p.now-l.t0 >= p.hold()) && p.mutant != resurrects {
			return
		}
		next := l.record
		next.sent = p.now
		p.swap(l.record, next, func(now simRecord, ok bool) {
			switch {
			case ok && !p.ours(now, next):
				p.end(l, "lost: the record was changed")
				return
			case l.over && p.mutant != resurrects || p.now-l.t0 >= p.hold() && p.mutant != resurrects:
				return
			case !ok:
				p.renewAt(l, p.now+100*ms)
				return
			}
			extended := now.sent > l.t0
			l.record, l.t0 = now, now.sent
			if p.mutant == holdFromResponse {
				l.t0 = p.now
			}
			if p.mutant == resurrects {
				l.over = false
			}
			if !extended { // the record has an extension more
				p.renewAt(l, p.now)
				return
			}
			p.look(history.Renewed, l, 0)
			if p.mutant != holdFromResponse {
				p.renewAt(l, now.sent+rules.Renew)
				return
			}
			p.renewAt(l, p.now+rules.Renew)
			if p.now-now.sent > 700*ms {
				p.breaks("cut") // right after a slow answer
			}
		})
	})
}

func (p *process) work(l *simLease) {
	p.number++
	number := p.number
	if !p.look(history.Writing, l, number) {
		return
	}
	answer := history.Event{Token: l.token, Number: number, Before: p.now}
	if p.random.IntN(40) == 0 {
		p.stop(p.between(200*ms, 5*time.Second))
	}
	p.after(p.between(1*ms, 5*ms), func() {
		p.at(p.between(1*ms, 5*ms), func() {
			did := history.Event{Kind: history.Accepted, Candidate: p.name, Token: l.token, Number: number}
			answer.Kind = history.Wrote
			if l.token < p.fence && p.mutant != noFence {
				did.Kind, answer.Kind = history.Rejected, history.Refused
			}
			p.fence = max(p.fence, l.token)
			p.tell(did)
			p.after(p.between(1*ms, 5*ms), func() {
				p.tells(answer)
				p.after(150*ms, func() { p.work(l) })
			})
		})
	})
}

func (p *process) resign(l *simLease) {
	if l.over || p.now-l.t0 >= p.hold() {
		return
	}
	var release func()
	release = func() {
		next := simRecord{token: l.token, sent: p.now, ttl: rules.TTL, extensions: p.passedOn(l.record.extensions)}
		p.swap(l.record, next, func(now simRecord, ok bool) {
			if ok && p.ours(now, l.record) {
				l.record = now // a renewal came in between
				release()
				return
			}
			e := history.Event{Kind: history.Released, Token: l.token}
			if !ok {
				e.Detail = "no answer"
			}
			p.tells(e)
			p.after(p.between(200*ms, time.Second), p.campaign)
		})
	}
	if p.mutant == releaseFirst {
		release()
		p.after(p.between(100*ms, 300*ms), func() { p.end(l, "resigned: ") })
		return
	}
	p.end(l, "resigned: ")
	p.after(p.between(6*ms, 10*ms), release)
}

func (p *process) observe() {
	before, r := p.now, simRecord{}
	p.ask(func() {
		r = p.record
		if p.mutant == staleReads {
			for i := len(p.olds) - 1; i >= 0 && p.olds[i] > p.now-time.Second; i-- {
				r = p.old[i]
			}
		}
	}, func(ok bool) {
		if ok {
			p.tells(history.Event{Kind: history.Observed, Before: before, Token: r.token, Holder: r.holder})
			if p.mutant != staleReads {
				p.see(r)
			}
		}
		p.after(p.between(100*ms, 500*ms), p.observe)
	})
}

// stop stops the process for some time.
func (p *process) stop(d time.Duration) {
	if p.dead || p.stopped {
		return
	}
	p.stopped = true
	p.tell(history.Event{Kind: history.Stopped, Candidate: p.name})
	p.at(d, func() {
		if p.dead {
			return
		}
		p.stopped = false
		p.tell(history.Event{Kind: history.Continued, Candidate: p.name})
		todo := p.deferred
		p.deferred = nil
		for i, do := range todo {
			p.after(time.Duration(i)*10*time.Microsecond, do)
		}
	})
}

func (p *process) kill() {
	p.dead = true
	p.tell(history.Event{Kind: history.Killed, Candidate: p.name})
	for i, q := range p.alive {
		if p == q {
			p.alive = append(p.alive[:i:i], p.alive[i+1:]...)
		}
	}
	p.at(p.between(0, 3*time.Second), p.start)
}

// breaks breaks the network of a process for some time.
func (p *process) breaks(how string) {
	heal := func() {
		if p.network != "" {
			p.tell(history.Event{Kind: history.Healed, Candidate: p.name, Detail: "network: " + p.network})
			p.network = ""
		}
	}
	heal()
	p.network = how
	p.tell(history.Event{Kind: history.Fault, Candidate: p.name, Detail: "network: " + how})
	p.at(p.between(500*ms, 5*time.Second), func() {
		if p.network == how {
			heal()
		}
	})
}
