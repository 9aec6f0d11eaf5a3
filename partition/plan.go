package partition

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/rule"
)

// A plan is the text of a group's plan. A plan that was decided on does not change.
type plan struct {
	partitions int
	audit      time.Duration // A: see package rule
	founding   bool          // not all partitions have a record yet
	positions  []position    // in the order in which they were added
}

// A position is a share of the partitions. One with the weight 0 is none: it shows that an
// earlier one became empty at that point of the order.
type position struct {
	seat    int // noSeat if it is empty
	weight  int
	emptied int // the earlier position
}

const noSeat = -1

// planForm is the form of the text, and of the table that follows from it. A version that
// computes another table has another form.
const planForm = "1"

// String returns the text of the plan: its form, the number of partitions, A, whether it
// is founding, and the positions: "0-2,.,4*2,-3" has the seats 0, 1 and 2, a position that is
// empty, seat 4 with the weight 2, and after that position 3 became empty.
func (p *plan) String() string {
	state := "settled"
	if p.founding {
		state = "founding"
	}
	text := fmt.Sprintf("%s %d %v %s", planForm, p.partitions, p.audit, state)
	separator := " "
	for i := 0; i < len(p.positions); separator = "," {
		at := p.positions[i]
		n := 1 // of seats with numbers that follow each other
		for at.seat != noSeat && i+n < len(p.positions) && p.positions[i+n] == (position{seat: at.seat + n, weight: at.weight}) {
			n++
		}
		text += separator
		switch {
		case at.weight == 0:
			text += "-" + strconv.Itoa(at.emptied)
		case at.seat == noSeat:
			text += "."
		case n == 1:
			text += strconv.Itoa(at.seat)
		default:
			text += fmt.Sprintf("%d-%d", at.seat, at.seat+n-1)
		}
		if at.weight > 1 {
			text += "*" + strconv.Itoa(at.weight)
		}
		i += n
	}
	return text
}

// parsePlan is the reverse of String.
func parsePlan(text string) (*plan, error) {
	form, rest, _ := strings.Cut(text, " ")
	if form != planForm {
		return nil, fmt.Errorf("its form is %.20q; this version of the library knows form %s: use one version in all processes", form, planForm)
	}
	fields := strings.Split(rest, " ")
	if len(fields) != 4 {
		return nil, fmt.Errorf("its text %.80q is not a plan", text)
	}
	p := &plan{partitions: number(fields[0]), founding: fields[2] == "founding"}
	p.audit, _ = time.ParseDuration(fields[1]) // 0 for anything else
	for _, part := range strings.Split(fields[3], ",") {
		if i, empties := strings.CutPrefix(part, "-"); empties {
			p.positions = append(p.positions, position{seat: noSeat, emptied: number(i)})
			continue
		}
		seats, weight, weighs := strings.Cut(part, "*")
		at := position{seat: noSeat, weight: 1}
		if weighs {
			at.weight = number(weight)
		}
		if seats == "." {
			p.positions = append(p.positions, at)
			continue
		}
		from, to, several := strings.Cut(seats, "-")
		first := number(from)
		last := first
		if several {
			last = number(to)
		}
		for at.seat = first; at.seat >= 0 && at.seat <= last && len(p.positions) < maxSeats+backends.MaxText; at.seat++ {
			p.positions = append(p.positions, at)
		}
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.String() != text {
		return nil, fmt.Errorf("its text %.80q is not as this library writes it", text)
	}
	return p, nil
}

// number returns what the text says, -1 for anything else.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<30 || strconv.Itoa(n) != text {
		return -1
	}
	return n
}

func (p *plan) check() error {
	seats, emptied := map[int]bool{}, map[int]bool{}
	empty := 0
	for i, at := range p.positions {
		switch was := at.emptied; {
		case at.seat == noSeat && at.weight == 0:
			if was < 0 || was >= i || p.positions[was].seat != noSeat || p.positions[was].weight == 0 || emptied[was] {
				return fmt.Errorf("it shows position %d as emptied", was)
			}
			emptied[was] = true
		case at.weight < 1 || at.weight > maxWeight:
			return fmt.Errorf("position %d has the weight %d, not between 1 and %d", i, at.weight, maxWeight)
		case at.seat == noSeat:
			empty++
		case at.seat >= maxSeats || seats[at.seat]:
			return fmt.Errorf("it has seat %d twice, or more than %d seats", at.seat, maxSeats)
		default:
			seats[at.seat] = true
		}
	}
	switch longest := rule.Audit(backends.MaxTTL); {
	case p.partitions < 1 || p.partitions > MaxPartitions:
		return fmt.Errorf("it has %d partitions, not between 1 and %d", p.partitions, MaxPartitions)
	case p.audit <= 0 || p.audit > longest:
		return fmt.Errorf("its audit bound is %v, not between 0 and %v", p.audit, longest)
	case len(seats) == 0:
		return fmt.Errorf("it has no seat")
	case len(emptied) != empty:
		return fmt.Errorf("it says when %d of %d empty positions became so", len(emptied), empty)
	}
	return nil
}

// latest is the table that this process has computed last: its members and observers of a
// group follow the same plan, and a table of many partitions takes long.
var latest struct {
	mutex sync.Mutex
	text  string // of the plan
	table func() []int
}

// table returns the seat of each partition. It is a function of the plan alone. The caller
// must not change it.
func (p *plan) table() []int {
	text := p.String()
	latest.mutex.Lock()
	if latest.text != text {
		latest.text, latest.table = text, sync.OnceValue(p.tabulate)
	}
	table := latest.table
	latest.mutex.Unlock()
	return table()
}

// tabulate computes the table.
//
// It follows the positions in their order: each one that was added or became empty moves
// the fewest partitions. So what reverses the last of these restores the table before.
func (p *plan) tabulate() []int {
	t := shares{of: make([][]int, len(p.positions)), weights: make([]int, 0, len(p.positions)), quotas: make([]int, len(p.positions))}
	for n := range p.partitions {
		t.of[0] = append(t.of[0], n)
	}
	for _, at := range p.positions {
		if at.weight == 0 {
			t.weights[at.emptied] = 0
		}
		t.weights = append(t.weights, at.weight)
		t.level(p.partitions)
	}
	table := make([]int, p.partitions)
	for i, at := range p.positions {
		for _, n := range t.of[i] {
			table[n] = at.seat
		}
	}
	return table
}

// shares are the partitions of each position.
type shares struct {
	of      [][]int
	weights []int // 0 for one that is empty, or no position
	quotas  []int
	order   []int
}

// level moves partitions from positions above their quotas to those below: the ones that
// they got last.
func (t *shares) level(partitions int) {
	if slices.Max(t.weights) == 0 {
		return // until the next position is added
	}
	t.quota(partitions)
	to := 0
	for from := range t.weights {
		for len(t.of[from]) > t.quotas[from] {
			for len(t.of[to]) >= t.quotas[to] {
				to++
			}
			last := len(t.of[from]) - 1
			t.of[to] = append(t.of[to], t.of[from][last])
			t.of[from] = t.of[from][:last]
		}
	}
}

// quota sets the quotas by weight, and gives what is left to the largest remainders, the
// first positions first.
func (t *shares) quota(partitions int) {
	sum := 0
	for _, w := range t.weights {
		sum += w
	}
	left := partitions
	t.order = t.order[:0]
	for i, w := range t.weights {
		t.quotas[i] = partitions * w / sum
		left -= t.quotas[i]
		t.order = append(t.order, i)
	}
	slices.SortStableFunc(t.order, func(i, j int) int {
		return partitions*t.weights[j]%sum - partitions*t.weights[i]%sum
	})
	for _, i := range t.order[:left] {
		t.quotas[i]++
	}
}

// next returns the plan for these members: the weights of the seats whose holders work.
// It returns p itself if nothing changes, or if there is no member.
func (p *plan) next(members map[int]int) *plan {
	before := p.weights()
	if len(members) == 0 || maps.Equal(before, members) {
		return p
	}
	q := &plan{p.partitions, p.audit, p.founding, slices.Clone(p.positions)}
	var left, came []int // positions whose seat has no such member any more, and seats of new ones
	for i, at := range q.positions {
		if at.seat != noSeat && members[at.seat] != at.weight {
			left = append(left, i)
		}
	}
	for seat, weight := range members {
		if before[seat] != weight {
			came = append(came, seat)
		}
	}
	slices.Sort(came)
	// A newcomer replaces one who has left. So what the one had goes to the other.
	came = slices.DeleteFunc(came, func(seat int) bool {
		for j, i := range left {
			if q.positions[i].weight == members[seat] {
				q.positions[i].seat = seat
				left = slices.Delete(left, j, j+1)
				return true
			}
		}
		return false
	})
	// What comes next reverses the latest change, if it can.
	for _, i := range slices.Backward(left) {
		if i == len(q.positions)-1 {
			q.positions = q.positions[:i]
			continue
		}
		q.positions[i].seat = noSeat
		q.positions = append(q.positions, position{seat: noSeat, emptied: i})
	}
	for _, seat := range came {
		if last := len(q.positions) - 1; last >= 0 && q.positions[last].weight == 0 && q.positions[q.positions[last].emptied].weight == members[seat] {
			q.positions[q.positions[last].emptied].seat = seat
			q.positions = q.positions[:last]
			continue
		}
		q.positions = append(q.positions, position{seat: seat, weight: members[seat]})
	}
	if len(q.String()) > backends.MaxText {
		q = founded(p.partitions, p.audit, members) // without empty positions, in order
		q.founding = p.founding
	}
	return q
}

// weights returns the weights by seat.
func (p *plan) weights() map[int]int {
	w := map[int]int{}
	for _, at := range p.positions {
		if at.seat != noSeat {
			w[at.seat] = at.weight
		}
	}
	return w
}

// top returns the highest seat.
func (p *plan) top() (top int) {
	for _, at := range p.positions {
		top = max(top, at.seat)
	}
	return top
}

// founded returns the first plan of a group.
func founded(partitions int, audit time.Duration, members map[int]int) *plan {
	p := &plan{partitions: partitions, audit: audit, founding: true}
	for seat := range members {
		p.positions = append(p.positions, position{seat: seat, weight: members[seat]})
	}
	slices.SortFunc(p.positions, func(a, b position) int { return a.seat - b.seat })
	return p
}
