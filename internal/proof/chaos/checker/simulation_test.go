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
	keepsTerm        mutant = "an acquisition keeps what was of the last term"
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
	value      string            // and whatever else may be changed by hand
	extensions map[string]string // never written to
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
