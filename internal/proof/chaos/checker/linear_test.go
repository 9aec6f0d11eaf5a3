package checker

import (
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// TestUndecided shows that a search that does not end is no pass: so many writes
// at the same time have more orders than anybody can try.
func TestUndecided(t *testing.T) {
	var s story
	for i := range 60 {
		s.tell(100, "A", history.Accepted, elector.Token(i+2), number(uint64(i)), until(200+i))
	}
	s.tell(300, "B", history.Rejected, 1)
	s.tell(150, "B", history.Rejected, 100, until(301))
	h := s.history()
	found := digest("story", rules, h.Events).checkOrder(50 * time.Millisecond)
	if len(found) != 1 || found[0].Rule != Undecided {
		t.Errorf("found\n%v, want %q", texts(found), Undecided)
	}
}

// TestLongHistory checks a long history: the search must not take longer than
// the number of events asks for.
func TestLongHistory(t *testing.T) {
	h := simulate(7, none, 3*time.Hour)
	if found := Check(h); len(found) > 0 {
		t.Errorf("found in a good history of %d events:\n%v", len(h.Events), texts(found))
	}
	t.Logf("%d events", len(h.Events))
}
