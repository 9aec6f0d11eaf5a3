package stage

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

// The stage reads what a child reports.
func TestEventsArrive(t *testing.T) {
	reported := []Event{
		{Kind: Started, Boot: time.Second},
		{Kind: Ended, Boot: 2 * time.Second, Detail: "load"},
		{Kind: "wrote", Partition: 5, Boot: 3 * time.Second, Token: elector.MaxToken, Valid: true, Left: time.Second, Within: time.Microsecond, Number: 7},
	}
	var out bytes.Buffer
	p := NewReporter(&out)
	for _, e := range reported {
		p.Report(e)
	}
	out.WriteString(`{"Kind":"wro`) // killed in the middle of a line
	var got []Event
	err := readEvents("A", &out, func(e Event) { got = append(got, e) })
	for i := range reported {
		reported[i].Process = "A"
	}
	if err != nil || !reflect.DeepEqual(got, reported) {
		t.Errorf("got %+v, %v; want %+v", got, err, reported)
	}
	if err := readEvents("A", strings.NewReader("hello\n"), func(Event) {}); err == nil {
		t.Error("what is no event was taken for one")
	}
}
