package main

import "testing"

func TestPart(t *testing.T) {
	seen := map[string]int{}
	for _, text := range []string{"1/3", "2/3", "3/3"} {
		var p part
		if err := p.Set(text); err != nil {
			t.Fatal(err)
		}
		for _, m := range p.choose(mutants) {
			seen[m.name]++
		}
	}
	for _, m := range mutants {
		if seen[m.name] != 1 {
			t.Errorf("%s is in %d of three parts", m.name, seen[m.name])
		}
	}
	for _, text := range []string{"", "1", "0/3", "4/3", "-1/3", "1/3/5", "1/0", "a/b"} {
		if err := new(part).Set(text); err == nil {
			t.Errorf("%q is taken for a part", text)
		}
	}
}
