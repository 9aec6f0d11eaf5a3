package report

import (
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// A script is a history written by hand, in milliseconds since its beginning.
type script struct {
	h    *history.History
	name string
}

const scriptBegin = 10 * time.Second

func ms(n int) time.Duration { return scriptBegin + time.Duration(n)*time.Millisecond }

// newScript begins an election with a TTL of 2 s: its takeovers are bound to
// 3.35 s, its handovers to 1.45 s.
func newScript(store, name string) *script {
	return &script{&history.History{Elections: []history.Election{{Store: store, Name: name, Rules: history.RulesOf(2*time.Second, 0)}}}, name}
}

// tell adds an event that began and was done at the same millisecond.
func (s *script) tell(at int, candidate string, kind history.Kind, set ...func(*history.Event)) {
	e := history.Event{Election: s.name, Candidate: candidate, Kind: kind, Before: ms(at), At: ms(at)}
	for _, f := range set {
		f(&e)
	}
	s.h.Events = append(s.h.Events, e)
}

func token(n int) func(*history.Event) {
	return func(e *history.Event) { e.Token = elector.Token(n) }
}

func write(n uint64) func(*history.Event) { return func(e *history.Event) { e.Number = n } }

// valid is a look that succeeds and says how many milliseconds are left.
func valid(left int) func(*history.Event) {
	return func(e *history.Event) { e.Valid, e.Left = true, time.Duration(left)*time.Millisecond }
}
