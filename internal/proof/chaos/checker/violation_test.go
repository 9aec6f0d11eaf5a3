package checker

import "testing"

func TestClass(t *testing.T) {
	for rule, want := range map[string]Class{
		"mx/two-valid": Safety, TooEarly: Safety, "rec/edited": Safety, "obs/monotonic": Safety,
		"mx/takeover-bound": Progress, GaveUp: Progress,
		Linearizable: Account, Undecided: Account,
	} {
		if got := (Violation{Rule: rule}).Class(); got != want {
			t.Errorf("%s is of %s, want %s", rule, got, want)
		}
	}
}
