package report

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A fake makes up one election of a history, episode by episode: a leader leads,
// and something happens to it.
type fake struct {
	h      *history.History
	random *rand.Rand
	name   string
	rules  history.Rules
	now    time.Duration
	token  elector.Token
	number uint64
	made   int
	alive  []string      // the first one leads
	last   time.Duration // the deadline of the present lease
}

const fakeBegin = 41 * time.Hour // a machine's clock does not begin with the history

func newFake(h *history.History, store, name string, rules history.Rules, seed uint64) *fake {
	f := &fake{h: h, random: rand.New(rand.NewPCG(seed, 7)), name: name, rules: rules, now: fakeBegin, token: 1795266000000000}
	h.Elections = append(h.Elections, history.Election{Store: store, Name: name, Rules: rules})
	for range 3 {
		f.start(f.now)
		f.now += 60 * time.Millisecond
	}
	f.now += 300 * time.Millisecond
	f.acquire()
	return f
}

// tell adds an event that took no time.
func (f *fake) tell(candidate string, kind history.Kind, at time.Duration, set func(*history.Event)) {
	e := history.Event{Election: f.name, Candidate: candidate, Kind: kind, Before: at - 200*time.Microsecond, At: at}
	if set != nil {
		set(&e)
	}
	f.h.Events = append(f.h.Events, e)
}

func detail(s string) func(*history.Event) { return func(e *history.Event) { e.Detail = s } }

func (f *fake) between(a, b time.Duration) time.Duration {
	return a + time.Duration(f.random.Int64N(int64(b-a)))
}

func (f *fake) start(at time.Duration) {
	name := ""
	for n := f.made; ; n = n/26 - 1 {
		name = string(rune('A'+n%26)) + name
		if n < 26 {
			break
		}
	}
	f.made++
	f.alive = append(f.alive, name)
	f.tell(name, history.Started, at, nil)
	f.tell(name, history.Opened, at+150*time.Millisecond, nil)
	if f.made > 1 {
		f.waits(name, at+170*time.Millisecond)
	}
}

func (f *fake) waits(name string, at time.Duration) {
	f.tell(name, history.Waits, at, func(e *history.Event) { e.Holder, e.Token = f.alive[0], f.token })
}

func (f *fake) look(kind history.Kind, at time.Duration) {
	f.tell(f.alive[0], kind, at, func(e *history.Event) {
		e.Token, e.Valid, e.Left = f.token, true, f.last-e.Before
		if kind == history.Writing {
			e.Number = f.number
		}
	})
}

// acquire makes the first of those alive the leader.
func (f *fake) acquire() {
	f.token += elector.Token(f.between(1, 5*time.Second).Microseconds())
	f.last = f.now + f.rules.Hold
	f.look(history.Acquired, f.now)
}

// lead leads for some time: it renews, and it writes.
func (f *fake) lead(d time.Duration) {
	leader, end, renew := f.alive[0], f.now+d, f.now+f.rules.Renew
	for t := f.now + 50*time.Millisecond; t < end; t += f.between(200*time.Millisecond, 400*time.Millisecond) {
		if t > renew {
			f.last = renew + f.rules.Hold
			f.look(history.Renewed, renew)
			renew += f.rules.Renew
		}
		f.number++
		f.look(history.Writing, t)
		f.write(leader, history.Accepted, history.Wrote, t, f.token)
		if f.random.IntN(9) == 0 {
			f.look(history.Checked, t+8*time.Millisecond)
			f.tell(f.alive[1], history.Observed, t+9*time.Millisecond, func(e *history.Event) { e.Holder, e.Token = leader, f.token })
		}
	}
	f.now = end
}

func (f *fake) write(who string, resource, answer history.Kind, at time.Duration, token elector.Token) {
	set := func(e *history.Event) { e.Token, e.Number = token, f.number }
	f.tell(who, resource, at+time.Millisecond, set)
	f.tell(who, answer, at+2*time.Millisecond, set)
}

func (f *fake) ended(who string, token elector.Token, at time.Duration, why string) {
	set := func(e *history.Event) { e.Token = token }
	f.tell(who, history.Ended, at, func(e *history.Event) { e.Token, e.Detail = token, why })
	f.tell(who, history.Canceled, at+time.Millisecond, set)
	if why[0] == 'r' {
		f.tell(who, history.Released, at+4*time.Millisecond, set)
	}
}

// next makes the next candidate the leader at some time.
func (f *fake) next(at time.Duration) {
	f.alive = append(f.alive[1:], f.alive[0])
	f.now = at
	f.acquire()
}

// dead makes the next candidate the leader, and a new process of the old one.
func (f *fake) dead(at time.Duration) {
	f.alive = f.alive[1:]
	f.now = at
	f.acquire()
	f.start(at + 400*time.Millisecond)
}

const lostCut = `lost: elector: the lease could not be renewed in time: Post "http://127.0.0.1:2379/v3/kv/txn?a=1&b=<2>": context deadline exceeded`

var episodes = map[string]func(f *fake){
	"kill": func(f *fake) {
		f.tell(f.alive[0], history.Killed, f.now, nil)
		f.tell(f.alive[0], history.Exited, f.now+9*time.Millisecond, detail("signal: killed"))
		f.dead(f.between(f.last+f.rules.TTL/5, f.now+f.rules.Takeover))
	},
	"terminate": func(f *fake) {
		leader := f.alive[0]
		f.tell(leader, history.Terminated, f.now, nil)
		f.ended(leader, f.token, f.now+40*time.Millisecond, "resigned: the worker has ended")
		f.tell(leader, history.Exited, f.now+90*time.Millisecond, nil)
		f.dead(f.now + f.between(46*time.Millisecond, 300*time.Millisecond))
	},
	"stop": func(f *fake) {
		old, token := f.alive[0], f.token
		f.tell(old, history.Stopped, f.now, nil)
		f.next(f.last + f.between(f.rules.TTL/5, f.rules.TTL/2))
		back := f.now + 700*time.Millisecond
		f.lead(600 * time.Millisecond)
		f.tell(old, history.Continued, back, nil)
		f.tell(old, history.Stalled, back+5*time.Millisecond, func(e *history.Event) { e.Left = time.Second })
		f.number++
		for i := range 3 {
			f.write(old, history.Rejected, history.Refused, back+time.Duration(10+i*3)*time.Millisecond, token)
			f.number++
		}
		f.ended(old, token, back+20*time.Millisecond, "lost: elector: the lease ran out")
		f.now = back
		f.waits(old, back+60*time.Millisecond)
	},
	"cut": func(f *fake) { f.broken([]string{"cut", "replies lost", "slow replies", "reset"}[f.random.IntN(4)]) },
	"latency of a waiter": func(f *fake) {
		f.tell(f.alive[1], history.Fault, f.now, detail("latency"))
		f.lead(4 * time.Second)
		f.tell(f.alive[1], history.Trouble, f.now-time.Second, detail("load: i/o timeout"))
		f.tell(f.alive[1], history.Healed, f.now, detail("latency"))
	},
	"store": func(f *fake) {
		kind := []string{"server restarted", "server killed"}[f.random.IntN(2)]
		f.tell("", history.Fault, f.now, detail(kind))
		f.trouble(f.alive, f.now, f.last)
		f.ended(f.alive[0], f.token, f.last, lostCut)
		healed := f.last + f.rules.TTL
		f.tell("", history.Healed, healed, detail(kind))
		f.next(healed + f.between(100*time.Millisecond, f.rules.Wait))
	},
	"removed": func(f *fake) {
		f.tell("", history.Removed, f.now, nil)
		f.ended(f.alive[0], f.token, f.now+f.rules.Renew, "lost: elector: the record is gone")
		f.next(f.now + f.rules.Wait + f.between(0, f.rules.Renew))
	},
	"restored": func(f *fake) {
		f.tell("", history.Restored, f.now, func(e *history.Event) { e.Token, e.Holder = f.token-5, f.alive[1] })
		f.ended(f.alive[0], f.token, f.now+f.rules.Renew, "lost: elector: the record is another's")
		f.next(f.now + f.rules.Wait + f.between(0, f.rules.Renew))
	},
	"spoiled": func(f *fake) {
		f.tell("", history.Spoiled, f.now, nil)
		f.ended(f.alive[0], f.token, f.last, "lost: elector: the record is foreign")
		f.tell("", history.Removed, f.last+time.Second, nil)
		f.next(f.last + time.Second + f.rules.Wait)
	},
	"fatal": func(f *fake) {
		f.tell(f.alive[2], history.Fatal, f.now, detail("no permission: <role> & \"user\""))
		f.tell(f.alive[2], history.Exited, f.now+5*time.Millisecond, detail("exit status 2"))
		f.alive = f.alive[:2]
		f.start(f.now + time.Second)
	},
	"failed write": func(f *fake) {
		f.number++
		f.tell(f.alive[0], history.Failed, f.now, func(e *history.Event) { e.Token, e.Number, e.Detail = f.token, f.number, "connection reset" })
	},
	"quiet": func(f *fake) { f.lead(f.between(40*time.Second, 100*time.Second)) },
}

func (f *fake) trouble(who []string, from, until time.Duration) {
	for t := from + 100*time.Millisecond; t < until; t += f.rules.Request {
		for _, c := range who {
			f.tell(c, history.Trouble, t, detail("swap: context deadline exceeded"))
		}
	}
}

// broken cuts the leader off.
func (f *fake) broken(kind string) {
	old, token := f.alive[0], f.token
	f.tell(old, history.Fault, f.now, detail(kind))
	f.trouble(f.alive[:1], f.now, f.last+2*time.Second)
	f.ended(old, token, f.last, lostCut)
	f.next(f.last + f.between(f.rules.TTL/5, f.rules.TTL/2))
	f.lead(2 * time.Second)
	f.tell(old, history.Healed, f.now, detail(kind))
	f.waits(old, f.now+100*time.Millisecond)
}

// overlapping is what must never be: the next one leads for a time in which the
// lease of the old one is still valid, and its write is taken.
func (f *fake) overlapping(d time.Duration) Problem {
	old, token := f.alive[0], f.token
	f.lead(f.rules.TTL)
	f.next(f.last - d)
	f.number++
	f.write(f.alive[0], history.Accepted, history.Wrote, f.now+20*time.Millisecond, f.token)
	f.number++
	f.write(old, history.Accepted, history.Wrote, f.now+40*time.Millisecond, token)
	at := f.now
	f.ended(old, token, f.now+d, "lost: elector: the record is another's")
	f.now += d
	return Problem{Election: f.name, Rule: "mx/two-valid", Text: fmt.Sprintf("guarantee 1: the leases of %s and %s were valid at the same time for %v", old, f.alive[0], d), At: at}
}

// run goes through random episodes.
func (f *fake) run(d time.Duration) {
	names := []string{"kill", "kill", "terminate", "terminate", "stop", "stop", "cut", "cut", "latency of a waiter", "store", "removed", "restored", "spoiled", "fatal", "failed write", "quiet"}
	for end := f.now + d; f.now < end; {
		f.lead(f.between(3*time.Second, 25*time.Second))
		episodes[names[f.random.IntN(len(names))]](f)
	}
}

// stop tells all to end.
func (f *fake) finish() {
	f.lead(2 * time.Second)
	for i, c := range f.alive {
		f.tell(c, history.Terminated, f.now+time.Duration(i)*time.Millisecond, nil)
		if i == 0 {
			f.ended(c, f.token, f.now+10*time.Millisecond, "resigned: the worker has ended")
		}
		f.tell(c, history.Exited, f.now+time.Duration(20+i)*time.Millisecond, nil)
	}
}

// campaign makes up a long history with all that there is; broken if it shall
// have an overlap and a stale write.
func campaign(d time.Duration, broken bool) (*history.History, []Problem) {
	h := &history.History{}
	var problems []Problem
	for i, store := range []string{"etcd", "etcd 3 nodes", "zookeeper", "zookeeper 3 nodes", "postgres", "dynamodb", "gcs"} {
		interval := time.Duration(0)
		if store == "gcs" {
			interval = time.Second
		}
		f := newFake(h, store, fmt.Sprintf("campaign-%d", i+1), history.RulesOf(time.Duration(2+i%2)*time.Second, interval), uint64(i+1))
		f.run(d / 2)
		if broken && store == "postgres" {
			problems = append(problems, f.overlapping(400*time.Millisecond))
		}
		f.run(d / 2)
		f.finish()
	}
	h.Sort()
	return h, problems
}
