package partition

import (
	"fmt"
	"reflect"
	"testing"
)

// Find tells groups from elections, by names alone.
func TestFind(t *testing.T) {
	names := []string{
		"orders.seat.10", "orders.p.1", "orders", "orders.plan", "orders.p.0", "orders.seat.2", "orders.p.10",
		"a.p.1.seat.0", "a.p.1.plan", // a group whose own name looks like a partition's
		"new.seat.0", // of one kind only
		"deploy.plan", "shop.p.3",
		"lost.seat.0", "lost.p.0", // its plan was deleted
		".plan", ".seat.1", "x.seat.", "x.seat.01", "x.seat.-1", "x.seat.10000", "x.p.131072", "x.p", "y.plan.z", "invoices", "",
	}
	groups, elections := Find(names)
	want := []Records{
		{Group: "a.p.1", Plan: true, Seats: []int{0}},
		{Group: "lost", Seats: []int{0}, Partitions: []int{0}},
		{Group: "orders", Plan: true, Seats: []int{2, 10}, Partitions: []int{0, 1, 10}},
	}
	if !reflect.DeepEqual(groups, want) {
		t.Errorf("groups: %+v", groups)
	}
	if rest := []string{"orders", "new.seat.0", "deploy.plan", "shop.p.3", ".plan", ".seat.1", "x.seat.", "x.seat.01", "x.seat.-1", "x.seat.10000", "x.p.131072", "x.p", "y.plan.z", "invoices", ""}; !reflect.DeepEqual(elections, rest) {
		t.Errorf("elections: %q", elections)
	}
	if groups, elections := Find(nil); groups != nil || elections != nil {
		t.Errorf("of nothing: %v, %v", groups, elections)
	}
	g := &Group{name: "orders"}
	groups, elections = Find([]string{g.planName(), g.seatName(3), g.record(7)})
	if want := []Records{{Group: "orders", Plan: true, Seats: []int{3}, Partitions: []int{7}}}; !reflect.DeepEqual(groups, want) || elections != nil {
		t.Errorf("the names that a group gives its records: %+v, %q", groups, elections)
	}
	names = nil
	for n := range 10000 {
		names = append(names, fmt.Sprintf("orders.p.%d", n))
	}
	if groups, elections := Find(append(names, "orders.plan")); len(groups) != 1 || len(groups[0].Partitions) != 10000 || elections != nil {
		t.Errorf("a large group: %d groups, %d elections", len(groups), len(elections))
	}
}
