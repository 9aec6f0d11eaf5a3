package electorgocron

import (
	"errors"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

func TestElection(t *testing.T) {
	for job, want := range map[string]string{
		"report":                       "report",
		"my_job-2.b":                   "my_job-2.b",
		"nightly report":               "nightly_20report",
		"nightly_20report":             "nightly_5F20report",
		"at_2f":                        "at_2f",
		"trailing_2":                   "trailing_2",
		".hidden":                      "_2Ehidden",
		"example.com/a/jobs.(*T).Send": "example.com_2Fa_2Fjobs._28_2AT_29.Send",
		"é":                            "_C3_A9",
	} {
		if got, err := election(job); err != nil || got != want {
			t.Errorf("%q: %q, %v", job, got, err)
		}
	}
	for _, job := range []string{"", strings.Repeat("a", backends.MaxName+1), strings.Repeat("/", backends.MaxName)} {
		if _, err := election(job); !errors.Is(err, backends.ErrName) || !strings.Contains(err.Error(), "gocron.WithName") {
			t.Errorf("%.20q…: %v", job, err)
		}
	}
}

// TestTwoJobs: no two jobs have the same election. All texts of a few bytes that are
// special, one way or another.
func TestTwoJobs(t *testing.T) {
	t.Run("of every name of six bytes", func(t *testing.T) {
		const special = "_20Fa. "
		jobs := map[string]string{}
		var try func(job string)
		try = func(job string) {
			if job != "" {
				e, err := election(job)
				if err != nil {
					t.Fatal(err)
				}
				if other, taken := jobs[e]; taken {
					t.Fatalf("%q and %q have the election %s", job, other, e)
				}
				jobs[e] = job
			}
			if len(job) < 6 {
				for _, c := range special {
					try(job + string(c))
				}
			}
		}
		try("")
	})
}
