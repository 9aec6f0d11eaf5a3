package main

import (
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	fields := func(n int) string { return strings.Repeat("a, ", n-1) + "a int" }
	for text, wrong := range map[string]int{
		"package p\n": 0,
		"package p\n\ntype s struct { " + fields(mostFields) + " }\n":                0,
		"package p\n\ntype s struct { " + fields(mostFields+1) + " }\n":              1,
		"package p\n\ntype s struct { " + fields(mostFields) + "; t }\ntype t int\n": 1,
		"package p\n\ntype Options struct { " + fields(mostFields+1) + " }\n":        0,
		"package p\n" + strings.Repeat("\n", mostLines-1):                            0,
		"package p\n" + strings.Repeat("\n", mostLines):                              1,
	} {
		s, err := parse("p.go", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if all := s.tooLarge(); len(all) != wrong {
			t.Errorf("%.60q: %q", text, all)
		}
	}
}
