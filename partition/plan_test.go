package partition

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// parsed returns the plan with a text that has no error.
func parsed(t testing.TB, text string) *plan {
	t.Helper()
	p, err := parsePlan(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// members returns members with the weight 1.
func members(seats ...int) map[int]int {
	m := map[int]int{}
	for _, seat := range seats {
		m[seat] = 1
	}
	return m
}

// counts returns how many partitions each seat has.
func counts(table []int) map[int]int {
	n := map[int]int{}
	for _, seat := range table {
		n[seat]++
	}
	return n
}

func TestParsePlan(t *testing.T) {
	got := parsed(t, "1 100 900h0m0s founding 3-5,.,9*2,-3")
	want := &plan{100, 900 * time.Hour, true, []position{{3, 1, 0}, {4, 1, 0}, {5, 1, 0}, {noSeat, 1, 0}, {9, 2, 0}, {noSeat, 0, 3}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is %+v, not %+v", got, want)
	}
	for _, c := range []struct{ text, reason string }{
		{"", `its form is ""`},
		{"2 100 10m0s settled 0", `its form is "2"; this version of the library knows form 1`},
		{"1 100 10m0s settled", "is not a plan"},
		{"1 100 10m0s settled 0 1", "is not a plan"},
		{"1 0 10m0s settled 0", "it has 0 partitions"},
		{"1 131073 10m0s settled 0", "it has 131073 partitions"},
		{"1 x 10m0s settled 0", "it has -1 partitions"},
		{"1 100 600 settled 0", "its audit bound is 0s"},
		{"1 100 -10m0s settled 0", "its audit bound is -10m0s"},
		{"1 100 100000h0m0s settled 0", "its audit bound is 100000h0m0s"},
		{"1 100 600s settled 0", "not as this library writes it"},
		{"1 100 10m0s begun 0", "not as this library writes it"},
		{"1 100 10m0s settled .,-0", "it has no seat"},
		{"1 100 10m0s settled 1,2,1", "it has seat 1 twice"},
		{"1 100 10m0s settled 10000", "it has seat 10000"},
		{"1 100 10m0s settled 0-999999999", "it has seat 10000"},
		{"1 100 10m0s settled 0*1001", "position 0 has the weight 1001"},
		{"1 100 10m0s settled 0,1*0", "position 1 has the weight 0"},
		{"1 100 10m0s settled 0,1*x", "position 1 has the weight -1"},
		{"1 100 10m0s settled 0*1", "not as this library writes it"},
		{"1 100 10m0s settled 0,1", "not as this library writes it"},
		{"1 100 10m0s settled 0,x", "not as this library writes it"},
		{"1 100 10m0s settled 0,02", "not as this library writes it"},
		{"1 100 10m0s settled 0,.", "it says when 0 of 1 empty positions became so"},
		{"1 100 10m0s settled 0,-0", "it shows position 0 as emptied"},
		{"1 100 10m0s settled 0,-1,.", "it shows position 1 as emptied"},
		{"1 100 10m0s settled 0,.,-1,-1", "it shows position 1 as emptied"},
		{"1 100 10m0s settled 0,.,-1,-2", "it shows position 2 as emptied"},
		{"1 100 10m0s settled 0,-x", "it shows position -1 as emptied"},
	} {
		if _, err := parsePlan(c.text); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s: the error is %v, not %s", c.text, err, c.reason)
		}
	}
}

// Members come and go at random. Each table is even, and differs from the one before by as
// few partitions as the numbers of each seat allow. Undoing a change restores it.
func TestMoves(t *testing.T) {
	for _, c := range []struct {
		name                        string
		partitions, weight, changes int // at most, the last two
	}{
		{"one at a time", 1000, 1, 1},
		{"several at once", 1000, 1, 6},
		{"more members than partitions", 12, 1, 6},
		{"weights of 1 to 3", 1000, 3, 1},
		{"weights of 1 to 1000", 1000, 1000, 1},
		{"several weights at once", 1000, 3, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewSource(1))
			m := members(0)
			p := founded(c.partitions, time.Hour, m)
			for range 150 {
				before := maps.Clone(m)
				for _, seat := range random.Perm(30)[:1+random.Intn(c.changes)] {
					if m[seat] == 0 {
						m[seat] = 1 + random.Intn(c.weight)
					} else if len(m) > 1 {
						delete(m, seat)
					}
				}
				q := p.next(m)
				if got := q.weights(); !maps.Equal(got, m) {
					t.Fatalf("it has the members %v, not %v", got, m)
				}
				if again := parsed(t, q.String()); !reflect.DeepEqual(again, q) {
					t.Fatalf("it comes back from its text %s as %s", q, again)
				}
				from, to := p.table(), q.table()
				had, has := counts(from), counts(to)
				if err := even(has, m, c.partitions); err != nil {
					t.Fatalf("%s: %v", q, err)
				}
				moved, least := 0, 0
				for n := range to {
					if from[n] != to[n] {
						moved++
					}
				}
				for seat, n := range has {
					least += max(0, n-had[seat])
				}
				if c.weight > 1 && moved <= least+c.changes-1 {
					least = moved // the remainders of the steps between may cost one each
				}
				if moved != least {
					t.Fatalf("from %s to %s %d partitions move, not %d", p, q, moved, least)
				}
				if c.changes == 1 && !slices.Equal(q.next(before).table(), from) {
					t.Fatalf("from %s to %s and back to %s the table changes", p, q, q.next(before))
				}
				p = q
			}
		})
	}
}

// even returns an error unless each member has its share by weight, the largest remainder.
func even(has, m map[int]int, partitions int) error {
	sum, all := 0, 0
	for seat := range m {
		sum, all = sum+m[seat], all+has[seat]
	}
	type share struct{ seat, remainder, more int }
	var shares []share
	for seat, w := range m {
		shares = append(shares, share{seat, partitions * w % sum, has[seat] - partitions*w/sum})
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(a.remainder-b.remainder, a.more-b.more) })
	if all != partitions || shares[0].more < 0 || !slices.IsSortedFunc(shares, func(a, b share) int { return a.more - b.more }) || shares[len(shares)-1].more > 1 {
		return fmt.Errorf("of %d partitions the members %v have %v", partitions, m, has)
	}
	return nil
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name    string
		plan    string // its positions
		members map[int]int
		next    string
	}{
		{"a join", "0-1", members(0, 1, 2), "0-2"},
		{"the one that came last leaves", "0-2", members(0, 1), "0-1"},
		{"another one leaves", "0-2", members(0, 2), "0,.,2,-1"},
		{"two leave", "0-3", members(0, 3), "0,.,.,3,-2,-1"},
		{"the position emptied last is filled first", "0,.,.,3,-2,-1", members(0, 3, 7), "0,7,.,3,-2"},
		{"another weight does not fit", "0,.,2,-1", map[int]int{0: 1, 2: 1, 7: 2}, "0,.,2,-1,7*2"},
		{"which leaves again", "0,.,2,-1,7*2", members(0, 2), "0,.,2,-1"},
		{"newcomers replace leavers of the same weight", "0-1,2*2,3", map[int]int{0: 1, 5: 2, 6: 1, 3: 1}, "0,6,5*2,3"},
		{"one of another weight does not", "0-2", map[int]int{0: 1, 2: 1, 5: 2}, "0,.,2,-1,5*2"},
		{"another weight in the same seat", "0-2", map[int]int{0: 1, 1: 4, 2: 1}, "0,.,2,-1,1*4"},
		{"all seats are others", "0-1", members(5, 6), "5-6"},
		{"all seats and weights are others", "0,.,2,-1", map[int]int{5: 3}, ".,.,.,-1,-2,-0,5*3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parsed(t, "1 10 10m0s settled "+c.plan)
			q := p.next(c.members)
			if got := strings.Fields(q.String())[4]; got != c.next {
				t.Errorf("it is %s, not %s", got, c.next)
			}
			if n := len(q.table()); n != 10 || p.String() != "1 10 10m0s settled "+c.plan {
				t.Errorf("it has %d partitions; the plan before is %s", n, p)
			}
		})
	}
	p := parsed(t, "1 10 10m0s settled 0,.,2*3,-1")
	for _, m := range []map[int]int{{0: 1, 2: 3}, {}, nil} {
		if p.next(m) != p {
			t.Errorf("the plan changes for the members %v", m)
		}
	}
}

// Only what the leaver had moves to the newcomer in its place.
func TestReplaced(t *testing.T) {
	p := parsed(t, "1 100 10m0s settled 0-3,.,5,-4")
	got := p.next(members(0, 9, 2, 3, 5)).table()
	for n, seat := range p.table() {
		if want := map[int]int{1: 9}[seat]; got[n] != cmp.Or(want, seat) {
			t.Fatalf("partition %d goes from seat %d to %d", n, seat, got[n])
		}
	}
}

// A plan of 800 seats in any order has room in a record. One that has not begins anew.
func TestPlanSize(t *testing.T) {
	p := &plan{partitions: 1000, audit: time.Hour}
	order := rand.New(rand.NewSource(1)).Perm(1200)
	for _, seat := range order[:800] {
		p.positions = append(p.positions, position{seat: seat, weight: 1})
	}
	if n := len(p.String()); n >= backends.MaxText {
		t.Errorf("800 seats take %d bytes", n)
	}
	q := p.next(members(order...))
	if want := "1 1000 1h0m0s settled 0-1199"; q.String() != want {
		t.Errorf("it begins anew as %s, not %s", q, want)
	}
}

// Two versions with one planForm must have the same tables: if this test fails, planForm
// must change.
func TestPlanForm(t *testing.T) {
	for text, want := range map[string]string{
		"1 1000 10m0s settled 0-9":                       "d28372a7089901b9",
		"1 1000 10m0s settled 4,.,0-2,-1":                "bb1631cb93172d0a",
		"1 1000 10m0s settled 0*5,3*1000,.*7,1-2*3,-2,7": "4d580ec0bee07c3c",
		"1 5 10m0s founding 9,.,1-5,-1":                  "20434d1106aa0092",
	} {
		table, err := json.Marshal(parsed(t, text).table())
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%.8x", sha256.Sum256(table)); got != want {
			t.Errorf("the table of %s has the hash %s, not %s", text, got, want)
		}
	}
}

func BenchmarkTable(b *testing.B) {
	for _, weight := range []int{1, 1000} {
		b.Run(fmt.Sprintf("weight%d", weight), func(b *testing.B) {
			p := &plan{partitions: 100_000, audit: time.Hour}
			for i := range 1000 {
				p.positions = append(p.positions, position{seat: i, weight: 1 + i%weight})
			}
			for b.Loop() {
				p.tabulate()
			}
		})
	}
}
