package demo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
)

// What a child tells, the demo understands.
func TestEventsArrive(t *testing.T) {
	told := []Event{
		{Kind: opened, Boot: time.Second},
		{Kind: asked, Boot: 2 * time.Second, Detail: "load"},
		{Kind: wrote, Boot: 3 * time.Second, Token: elector.MaxToken, Valid: true, Left: time.Second, Invoice: 7},
	}
	var out bytes.Buffer
	p := &Probe{out: json.NewEncoder(&out)}
	for _, e := range told {
		p.tell(e)
	}
	out.WriteString(`{"Kind":"wro`) // killed in the middle of a line
	var got []Event
	err := readEvents("A", &out, func(e Event) { got = append(got, e) })
	for i := range told {
		told[i].Process = "A"
	}
	if err != nil || !reflect.DeepEqual(got, told) {
		t.Errorf("got %+v, %v; want %+v", got, err, told)
	}
	if err := readEvents("A", strings.NewReader("hello\n"), func(Event) {}); err == nil {
		t.Error("what is no event was taken for one")
	}
}
