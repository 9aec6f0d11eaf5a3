package checker

import (
	"container/heap"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A mutant is a way to get the protocol of the simulation wrong.
type mutant string

const (
	none             mutant = ""
	noFence          mutant = "no fence"
	holdFromResponse mutant = "H from the response"
	earlyTakeover    mutant = "a challenger waits for half of the TTL"
	lateTakeover     mutant = "a challenger waits for three times C"
	overstays        mutant = "a holder trusts its lease for one and a half TTLs"
	tokenReset       mutant = "a release resets the token"
	tokenStays       mutant = "a takeover keeps the token"
	releaseFirst     mutant = "the store is told before the lease ends"
	resurrects       mutant = "a late renewal brings a lease back"
	timerOnly        mutant = "Check relies on a timer"
	lateCancel       mutant = "the context ends half a second late"
	vanishedIsVacant mutant = "a vanished record is taken as vacant"
	staleReads       mutant = "reads may be a second old"
	adoptsEdits      mutant = "a holder goes on from whatever has its token"
	leadsOnCritical  mutant = "a holder goes on though there is a critical extension"
	claimsCritical   mutant = "a critical extension keeps nobody away"
	dropsKept        mutant = "an acquisition drops what is to be kept"
	keepsTenure      mutant = "an acquisition keeps what was of the last tenure"
	ownsExtensions   mutant = "a holder has lost when an extension was changed"
)

// simulate returns the history of a small election protocol on a store that
// compares and swaps, in simulated time, while processes are killed and stopped,
// networks are cut and slow, and the record is tampered with. It is the same for
// the same seed.
func simulate(seed uint64, m mutant, length time.Duration) *history.History {
	s := &simulation{mutant: m, random: rand.New(rand.NewPCG(seed, 1)), now: time.Second}
	for range 3 {
		s.start()
	}
	s.at(3*time.Second, s.trouble)
	s.at(time.Second/2, s.rememberRecord)
	s.at(time.Second, s.show)
	for end := s.now + length; s.now < end; {
		next := heap.Pop(&s.queue).(step)
		s.now = next.at
		next.do()
	}
	h := &history.History{Elections: []history.Election{{Store: "simulated", Name: "simulated", Rules: rules}}, Events: s.events}
	h.Sort()
	return h
}

type simulation struct {
	mutant  mutant
	random  *rand.Rand
	now     time.Duration
	queue   queue
	steps   int
	events  []history.Event
	record  simRecord
	old     []simRecord // states of the record, with when they were
	olds    []time.Duration
	earlier []simRecord // to roll back to
	version int
	fence   elector.Token
	alive   []*process
	started int
}

type simRecord struct {
	version int // 0: there is none
	holder  string
	token   elector.Token
	sent    time.Duration // t0 of the attempt that wrote it

	ttl        time.Duration
	value      string            // and whatever else somebody may change by hand
	extensions map[string]string // never written to
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
		return name[0] == 'k' && p.mutant == dropsKept || name[0] == 't' && p.mutant != keepsTenure || name[0] == 'c'
	})
	return passed
}

type step struct {
	at    time.Duration
	order int
	do    func()
}

type queue []step

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].order < q[j].order
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(step)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (s *simulation) at(after time.Duration, do func()) {
	s.steps++
	heap.Push(&s.queue, step{s.now + after, s.steps, do})
}

// between returns a random time.
func (s *simulation) between(a, b time.Duration) time.Duration {
	return a + time.Duration(s.random.Int64N(int64(b-a)))
}

func (s *simulation) tell(e history.Event) {
	e.Election = "simulated"
	if e.Before == 0 {
		e.Before = s.now
	}
	if e.At == 0 {
		e.At = s.now + s.between(1, time.Microsecond)
	}
	s.events = append(s.events, e)
}

// write changes the record.
func (s *simulation) write(r simRecord) {
	s.old, s.olds = append(s.old, s.record), append(s.olds, s.now)
	s.version++
	r.version = s.version
	s.record = r
}

func (s *simulation) rememberRecord() {
	if s.record.extensions["c_x"] == "" {
		s.earlier = append(s.earlier, s.record)
	}
	s.at(2*time.Second, s.rememberRecord)
}

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

func (s *simulation) start() {
	name := string(rune('A' + s.started%3))
	if s.started > 2 {
		name = fmt.Sprint(name, s.started)
	}
	s.started++
	p := &process{simulation: s, name: name}
	s.alive = append(s.alive, p)
	s.tell(history.Event{Kind: history.Started, Candidate: p.name})
	p.after(s.between(1*ms, 50*ms), func() {
		p.tells(history.Event{Kind: history.Opened})
		p.campaign()
		p.observe()
	})
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
		timeout = 2 * time.Second // as nobody counts from when it was sent
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
				p.tells(history.Event{Kind: history.Disbelieved, Token: token})
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

// trouble breaks something every few seconds.
func (s *simulation) trouble() {
	s.at(s.between(2*time.Second, 12*time.Second), s.trouble)
	if len(s.alive) == 0 {
		return
	}
	p := s.alive[s.random.IntN(len(s.alive))]
	for _, q := range s.alive { // the leader, most of the time
		if q.name == s.record.holder && s.random.IntN(4) > 0 {
			p = q
		}
	}
	lead := p.lease != nil && !p.lease.over
	switch s.random.IntN(10) {
	case 0, 1:
		p.kill()
	case 2:
		p.stop(s.between(200*ms, 5*time.Second))
	case 3:
		if lead && !p.stopped {
			p.resign(p.lease)
		}
	case 4:
		now := s.now
		s.write(simRecord{})
		s.record.version = 0
		s.tell(history.Event{Kind: history.Removed, Before: now})
	case 5:
		if n := len(s.earlier); n > 0 {
			old := s.earlier[s.random.IntN(n)]
			s.old, s.olds = append(s.old, s.record), append(s.olds, s.now)
			s.record = old
			if old.version == 0 {
				s.tell(history.Event{Kind: history.Removed})
			} else {
				s.tell(history.Event{Kind: history.Restored, Token: old.token, Holder: old.holder})
			}
		}
	case 6, 7:
		if s.record.version != 0 {
			s.edit(s.random.IntN(6))
		}
	default:
		if p.network != "" {
			return
		}
		faults := []string{"cut", "lose requests", "lose replies", "latency", "slow replies"}
		if s.mutant == holdFromResponse {
			faults = []string{"slow replies"}
		}
		p.breaks(faults[s.random.IntN(len(faults))])
	}
}

// edit changes something in the record by hand.
func (s *simulation) edit(what int) {
	now, r := s.now, s.record
	e := history.Event{Kind: history.Edited}
	r.extensions = maps.Clone(r.extensions)
	if r.extensions == nil {
		r.extensions = map[string]string{}
	}
	if r.extensions["c_x"] != "" {
		what = 5
	}
	switch what {
	case 0:
		if r.holder == "" {
			return
		}
		e.Detail, r.holder = history.EditedHolder, ""
	case 1:
		e.Detail, e.Left, r.ttl = history.EditedTTL, rules.TTL/3, rules.TTL/3
	case 2:
		e.Detail, r.value = history.EditedValue, fmt.Sprint("edited at ", now)
	default:
		name, value := []string{"k_x", "t_x", "c_x"}[what-3], fmt.Sprint(now)
		if r.extensions[name] != "" && what == 5 {
			value = ""
		}
		r.extensions[name] = value
		e.Detail = history.Extension(name, value)
		if value == "" {
			delete(r.extensions, name)
		}
		if what == 5 && value != "" {
			s.at(s.between(100*ms, 8*time.Second), func() {
				if s.record.extensions["c_x"] != "" {
					s.edit(5)
				}
			})
		}
	}
	s.write(r)
	e.Token, e.Holder = r.token, r.holder
	s.tell(e)
}

// show tells what the record is, every now and then.
func (s *simulation) show() {
	s.at(s.between(100*ms, time.Second), s.show)
	if r := s.record; r.version != 0 {
		text, _ := json.Marshal(r.extensions)
		s.tell(history.Event{Kind: history.Shown, Token: r.token, Holder: r.holder, Detail: string(text)})
	}
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
