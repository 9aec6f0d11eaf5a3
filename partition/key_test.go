package partition

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// The partition of a key can never change: processes of two versions would work on the
// same key.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		key        string
		partitions int
		want       int
	}{
		{"", 1, 0},
		{"", 1024, 20},
		{"a", 1024, 458},
		{"customer-42", 64, 53},
		{"customer-42", 1000, 469},
		{"customer-43", 1000, 490},
		{"Zürich\x00\xff", 131072, 17716},
		{strings.Repeat("long", 1000), 100, 62},
	} {
		if got := Of(c.key, c.partitions); got != c.want {
			t.Errorf("Of(%.20q, %d) is %d, not %d", c.key, c.partitions, got, c.want)
		}
	}
}

// Keys that differ little spread as random ones do: chi squared is within five standard
// deviations.
func TestOfSpread(t *testing.T) {
	const keys = 20_000
	for _, form := range []string{"%d", "customer-%06d", "tenant-%[1]d/user-%[1]d"} {
		for _, partitions := range []int{2, 10, 64, 1000} {
			counts := make([]float64, partitions)
			for i := range keys {
				counts[Of(fmt.Sprintf(form, i), partitions)]++
			}
			mean, chi := keys/float64(partitions), 0.0
			for _, n := range counts {
				chi += (n - mean) * (n - mean) / mean
			}
			if free := float64(partitions - 1); chi > free+5*math.Sqrt(2*free) {
				t.Errorf("keys %s in %d partitions: chi squared is %.0f", form, partitions, chi)
			}
		}
	}
}

func TestOfNothing(t *testing.T) {
	for _, partitions := range []int{0, -1} {
		func() {
			defer func() {
				if got, want := recover(), fmt.Sprintf("partition.Of: there are %d partitions", partitions); got != want {
					t.Errorf("it panics with %v, not %q", got, want)
				}
			}()
			Of("a", partitions)
		}()
	}
}
