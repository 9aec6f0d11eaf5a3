package groups

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"
)

func TestJournal(t *testing.T) {
	var out bytes.Buffer
	var now time.Duration
	j := newJournal(&out, func() time.Duration { return now })
	takes := unit
	j.work = func() {
		now += takes
		j.sweep() // a unit under way is no pause, however long it takes
	}
	at := func(d time.Duration) { now = d }
	j.unit(3) // 0 to 10 ms
	at(12 * time.Millisecond)
	j.unit(3) // the same stretch
	at(14 * time.Millisecond)
	j.unit(5)
	takes = time.Hour
	j.unit(5) // stopped in this one
	j.rest(5)
	takes = unit
	j.unit(3) // an hour later, and no sweep in between
	at(now + pause)
	j.sweep() // not yet
	at(now + 1)
	j.sweep()
	j.rest(3)
	j.holds(4, began)
	j.holds(4, ended)

	type line struct {
		kind      string
		view      view
		partition int
		at        time.Duration
	}
	var got []line
	for d := json.NewDecoder(&out); ; {
		var m message
		if d.Decode(&m) != nil {
			break
		}
		got = append(got, line{m.Kind, m.View, m.Partition, m.At})
	}
	const ms = time.Millisecond
	later := 24*ms + time.Hour
	want := []line{
		{began, units, 3, 0},
		{began, units, 5, 14 * ms},
		{ended, units, 3, 22 * ms},
		{ended, units, 5, later},
		{began, units, 3, later},
		{ended, units, 3, later + 10*ms},
		{began, holds, 4, later + 10*ms + pause + 1},
		{ended, holds, 4, later + 10*ms + pause + 1},
	}
	if !slices.Equal(got, want) {
		t.Errorf("printed\n%v; want\n%v", got, want)
	}
}
