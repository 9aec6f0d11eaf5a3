package checker

import (
	"slices"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
)

func TestSpans(t *testing.T) {
	var s story
	s.open("A", "B", "D")
	s.lead("A", 5, 100, 1000) // renewed at 710
	s.resign(1500, "A", 5)
	s.lead("B", 6, 2000, 2100)
	s.tell(2200, "B", history.Killed, 0)
	s.lead("D", 7, 5000, 5100)
	s.lose(6900, "D", 7)
	s.lead("A", 8, 9000, 9100)
	s.look(20000, "B", history.Acquired, 9, 0) // never valid, as far as one knows
	got := Spans(s.history(), "story")
	at := func(millis int) time.Duration { return time.Duration(millis) * ms }
	want := []Span{
		{"A", 5, at(111), at(1503), "resigned"},
		{"B", 6, at(2011), at(3795), "killed"},
		{"D", 7, at(5011), at(6795), "lost"},
		{"A", 8, at(9011), at(10795), ""},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
}
