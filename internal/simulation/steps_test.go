package simulation

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// stepsFile has the steps of the specification, in a form that spin reads too.
const stepsFile = "../../spec/steps.pml"

// bySpecification is the rule that a step has broken which the specification has not.
const bySpecification = "the specification"

// TestSteps shows what the replays see without the checker.
func TestSteps(t *testing.T) {
	for seed := uint64(1); seed <= 30 && !t.Failed(); seed++ {
		judged(t, seed, true)
	}
}

// A transition is a step of the specification.
type transition struct {
	from []string
	to   string // empty if it changes nothing
}

var specified = sync.OnceValues(func() (map[string]transition, error) {
	text, err := os.ReadFile(stepsFile)
	if err != nil {
		return nil, err
	}
	steps := map[string]transition{}
	for _, m := range regexp.MustCompile(`(?m)^#define CAN_(\w+)\(x\) +\((.*)\)$`).FindAllStringSubmatch(string(text), -1) {
		var t transition
		for state := range strings.SplitSeq(m[2], " || ") {
			t.from = append(t.from, strings.TrimPrefix(state, "x == "))
		}
		steps[m[1]] = t
	}
	for _, m := range regexp.MustCompile(`(?m)^#define TO_(\w+) +(\w+)$`).FindAllStringSubmatch(string(text), -1) {
		t := steps[m[1]]
		t.to = m[2]
		steps[m[1]] = t
	}
	if n := strings.Count(string(text), "#define "); len(steps) == 0 || n < len(steps) || n > 2*len(steps) {
		return nil, fmt.Errorf("%s has %d definitions, and %d steps were read", stepsFile, n, len(steps))
	}
	return steps, nil
})

// A trail follows what one Elector does, as its steps and the network show it, through
// the specification. It draws its own conclusions from the states that were shown.
type trail struct {
	n     *node
	steps map[string]transition

	mutex    sync.Mutex
	claim    string
	overs    map[string]bool // nonces of acquisitions that are over, and that nothing speaks against
	nonce    string          // of the claim
	creates  bool
	token    uint64
	record   backends.Record // the latest state that was believed
	last     backends.Record // the latest that was a record at all
	seen     bool
	since    time.Duration // when its attempt was first shown
	distrust time.Duration // no takeover before
	highest  uint64
	terms    map[string]*term // by nonce
	taken    map[string]int   // steps, by name and state
}

// A term is what a trail knows of one acquisition.
type term struct {
	life, release string
	believed      bool
	over          bool // its work has stopped, and the record may be taken at once
	failed        bool // a write of a creation has failed
	writes        int  // that may be sent
	until         time.Duration
	sent          map[uint64]time.Duration // its writes, by number
	shown         map[uint64]time.Duration // those that were shown to be applied
}

func newTrail(n *node) *trail {
	steps, err := specified()
	if err != nil {
		n.w.Fatal(err)
	}
	return &trail{n: n, steps: steps, claim: "trying", overs: map[string]bool{}, terms: map[string]*term{}, taken: map[string]int{}}
}

func (p *trail) term(nonce string) *term {
	t := p.terms[nonce]
	if t == nil {
		t = &term{life: "none", release: "unwritten", sent: map[uint64]time.Duration{}, shown: map[uint64]time.Duration{}}
		p.terms[nonce] = t
	}
	return t
}

// step takes a step in one of the three states, if the specification has it.
func (p *trail) step(name string, state *string) {
	t, known := p.steps[name]
	if !known || !slices.Contains(t.from, *state) {
		p.broken("it takes the step %q in the state %q", name, *state)
		return
	}
	p.taken[name+" "+*state]++
	if t.to != "" {
		*state = t.to
	}
}

func (p *trail) broken(format string, args ...any) {
	if !p.n.w.check.stopped {
		p.n.w.broken(bySpecification, p.n.name+": "+format, args...)
	}
}

// wait is C of a record.
func (p *trail) wait(r backends.Record) time.Duration { return challenge(p.n, r.TTL) }

// take replays a step that the Elector has reported.
func (p *trail) take(s rule.Step) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch t := p.term(s.Nonce); s.Name {
	case "see":
		p.see(s)
	case "begin":
		p.begin(s)
	case "doubt":
		if p.creates && p.claim == "trying" {
			p.step("doubt", &p.claim)
		}
	case "believe":
		if t.believed = s.Taken; s.Taken {
			p.step("believe", &p.claim)
			if s.Nonce != p.nonce || s.Token < p.highest || s.Now < p.distrust {
				p.broken("it believes an acquisition with token %d at %v, after token %d; no record is trusted before %v", s.Token, s.Now, p.highest, p.distrust)
			}
		}
	case "repeat":
		if s.Taken && p.record.Attempt.Nonce != s.Nonce { // otherwise it was applied
			p.step("repeat", &p.claim)
			p.free(s)
		}
		if s.Taken {
			t.writes++
		}
	case "over":
		p.over(s, t)
	case "win":
		p.step("win", &t.life)
		if !t.believed {
			p.broken("it leads, and has not believed its acquisition")
		}
		p.extend(s, t)
	case "extend":
		p.step("extend", &t.life)
		p.extend(s, t)
	case "drain", "resign", "lose", "overrun", "depose":
		p.step(s.Name, &t.life)
	case "write", "written", "fail", "give_up":
		p.step(s.Name, &t.release)
	default:
		p.broken("the specification has no step %q", s.Name)
	}
}

// see replays that a state was shown.
func (p *trail) see(s rule.Step) {
	r := s.Record
	older := !r.Exists() || r.Token < p.last.Token || r.Attempt == p.record.Attempt ||
		r.Attempt.Nonce == p.last.Attempt.Nonce && r.Attempt.Sequence < p.last.Attempt.Sequence
	switch {
	case !s.Taken && !older:
		p.broken("it ignores a state with token %d after one with token %d", r.Token, p.last.Token)
		return
	case !s.Taken, p.seen && r.Version == p.record.Version:
		return
	}
	if t := p.terms[r.Attempt.Nonce]; r.Exists() && t != nil {
		if _, shown := t.shown[r.Attempt.Sequence]; !shown {
			t.shown[r.Attempt.Sequence] = s.Now
		}
	}
	if p.last.Exists() && (!r.Exists() || r.Token < p.last.Token) {
		p.distrust = max(p.distrust, s.Now+p.wait(p.last))
		p.contest()
	}
	if r.Exists() && r.Attempt.Nonce != p.nonce && !p.overs[r.Attempt.Nonce] {
		p.contest()
	}
	if !p.seen || r.Attempt != p.record.Attempt || !r.Exists() {
		p.since = s.Now
	}
	p.seen, p.record = true, r
	if r.Exists() {
		p.last, p.highest = r, max(p.highest, r.Token)
	}
}

func (p *trail) contest() {
	clear(p.overs)
	if p.nonce != "" {
		p.step("contest", &p.claim)
	}
}

// begin replays that an acquisition begins.
func (p *trail) begin(s rule.Step) {
	if p.nonce != "" && slices.Contains(p.steps["extend"].from, p.term(p.nonce).life) {
		p.broken("it campaigns while it leads")
	}
	p.free(s)
	p.step("begin", &p.claim)
	p.nonce, p.token, p.creates = s.Nonce, s.Token, !s.Record.Exists()
	p.term(s.Nonce).writes = 1
}

// free checks that a record may be taken over.
func (p *trail) free(s rule.Step) {
	r, own := s.Record, p.overs[s.Record.Attempt.Nonce]
	switch {
	case r.Version != p.record.Version:
		p.broken("it replaces version %q, and the latest that was shown is %q", r.Version, p.record.Version)
	case s.Token <= p.highest:
		p.broken("it asks for token %d after %d", s.Token, p.highest)
	case s.Now < p.distrust:
		p.broken("it acquires at %v, and no record is trusted before %v", s.Now, p.distrust)
	case !r.Vacant() && !own && s.Now < p.since+p.wait(r):
		p.broken("it replaces a record that has stood for %v, not %v", s.Now-p.since, p.wait(r))
	}
}

// over replays that the work of an acquisition has stopped.
func (p *trail) over(s rule.Step, t *term) {
	if s.Nonce != p.nonce {
		return // another one has begun
	}
	if slices.Contains(p.steps["extend"].from, t.life) {
		p.broken("an acquisition is over while it leads")
	}
	if s.Taken && t.failed && p.claim == "trying" {
		p.broken("it may take the record at once, although the outcome of its creation is unknown")
	}
	if s.Taken {
		t.over, p.overs[s.Nonce] = true, true
	}
	if s.Taken && p.claim != "over" { // again
		p.step("over", &p.claim)
	}
}

// extend checks when a lease is over: H after a write was sent that an answer has shown.
func (p *trail) extend(s rule.Step, t *term) {
	h := holds(p.n)
	justified := false
	for number, at := range t.shown {
		sent, known := t.sent[number]
		late := t.until != 0 && at >= t.until || at >= sent+h
		justified = justified || known && !late && s.Until <= sent+h
	}
	if !justified {
		p.broken("its lease lasts until %v; its writes were sent at %v and shown at %v, and it was valid until %v", s.Until, t.sent, t.shown, t.until)
	}
	t.until = s.Until
}

// sends replays that a write leaves the Elector.
func (p *trail) sends(prev, next backends.Record, now moment) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	t := p.terms[next.Attempt.Nonce]
	if t == nil || isWord(prev, next) { // a pauser is another Elector
		return
	}
	if at := t.sent[prev.Attempt.Sequence]; next.Vacant() && now.mono >= at+holds(p.n) {
		p.broken("at %v it sends a release of a state that it has written at %v", now.mono, at)
	}
	if _, again := t.sent[next.Attempt.Sequence]; again { // alone, as others had no room for it
		return
	}
	t.sent[next.Attempt.Sequence] = now.mono
	leads := slices.Contains(p.steps["extend"].from, t.life)
	switch {
	case t.life == "none" && !next.Vacant():
		if t.writes--; t.writes < 0 {
			p.broken("it writes its acquisition again, and nothing has shown that it may")
		}
	case !next.Vacant():
	case leads:
		p.broken("it sends a release while it leads")
	case t.life == "lost":
		p.broken("it sends a release of a lease that was lost")
	case t.life == "none" && !t.over:
		p.broken("it sends a release of an acquisition that never led and is not over")
	case t.life != "none" && t.release == "unwritten":
		p.broken("it sends a release that has not begun")
	}
}

// answered replays that a write has failed.
func (p *trail) answered(prev, next backends.Record) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if t := p.terms[next.Attempt.Nonce]; t != nil && !prev.Exists() {
		t.failed = true
	}
}

// counts returns how often each step was taken, by name and state.
func (p *trail) counts() map[string]int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return maps.Clone(p.taken)
}

// untaken returns the transitions of the specification that are not among those taken.
func untaken(taken map[string]int) (missing []string) {
	steps, _ := specified()
	for _, name := range slices.Sorted(maps.Keys(steps)) {
		for _, from := range steps[name].from {
			if taken[name+" "+from] == 0 {
				missing = append(missing, name+" in the state "+from)
			}
		}
	}
	return missing
}
