package status

import (
	"maps"
	"slices"
	"strconv"
	"time"
)

const (
	step  = 5 * time.Second // of the history of a group
	steps = 120
)

// A past is who has owned how many partitions of a group, in steps of the last ten minutes.
type past struct{ moments []moment }

// A moment is one step.
type moment struct {
	number  int64          // of the step, since 1970
	owned   map[string]int // by ID, the latest in the step
	without int            // the most in the step: what is brief should show
}

// add takes in what was seen now.
func (p *past) add(now time.Time, owned map[string]int, without int) {
	m := moment{now.UnixNano() / int64(step), owned, without}
	if last := len(p.moments) - 1; last >= 0 && p.moments[last].number >= m.number {
		m.number, m.without = p.moments[last].number, max(without, p.moments[last].without)
		p.moments = p.moments[:last]
	}
	p.moments = append(p.moments, m)
	p.moments = slices.DeleteFunc(p.moments, func(old moment) bool { return old.number <= m.number-steps })
}

// owners returns who has owned partitions, in order.
func (p *past) owners() []string {
	ids := map[string]bool{}
	for _, m := range p.moments {
		for id, n := range m.owned {
			if n > 0 {
				ids[id] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// runs returns the values of the last steps, the oldest first, as pairs of a value and for
// how many steps it has lasted; the value is -1 where nothing is known. A value is valid for
// carry more steps, if no other follows.
func (p *past) runs(now time.Time, carry int, value func(moment) int) (runs [][2]int) {
	end := now.UnixNano() / int64(step)
	next, last, latest := 0, -1, int64(0)
	for n := end - steps + 1; n <= end; n++ {
		for next < len(p.moments) && p.moments[next].number <= n {
			last, latest = value(p.moments[next]), p.moments[next].number
			next++
		}
		v := last
		if n-latest > int64(carry) {
			v = -1
		}
		if i := len(runs) - 1; i >= 0 && runs[i][0] == v {
			runs[i][1]++
		} else {
			runs = append(runs, [2]int{v, 1})
		}
	}
	return runs
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
