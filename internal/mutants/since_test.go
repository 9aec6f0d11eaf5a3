package main

import "testing"

func TestTouched(t *testing.T) {
	all := []mutant{
		{name: "a", edits: []edit{{File: "renew.go"}}, pkg: simulation},
		{name: "b", edits: []edit{{File: "lease.go"}, {File: "pause.go"}}, pkg: "."},
		{name: "c", edits: []edit{{File: "backends/s3/s3.go"}}, module: "backends/s3", pkg: "."},
	}
	for changed, want := range map[string]string{"renew.go": "a", "pause.go": "b", "pause_test.go": "b", "internal/simulation/dice_test.go": "", "backends/s3/s3_test.go": "c", "README.md": ""} {
		got := ""
		for _, m := range touched(all, map[string]bool{changed: true}) {
			got += m.name
		}
		if got != want {
			t.Errorf("a change of %s touches %q, want %q", changed, got, want)
		}
	}
	for _, commit := range []string{"1", "2", "3", "abc"} {
		if got := atMost(all, 2, commit); len(got) != 2 || got[0].name == got[1].name {
			t.Errorf("two of three are %v", got)
		}
	}
	if got := atMost(all, 3, "1"); len(got) != 3 {
		t.Errorf("three of three are %v", got)
	}
}
