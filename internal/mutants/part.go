package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A part is the number-th of count parts of the mutants, or all of them if it is zero.
type part struct{ number, count int }

func (p *part) String() string { return fmt.Sprintf("%d/%d", p.number, p.count) }

// Set implements [flag.Value].
func (p *part) Set(text string) error {
	number, count, _ := strings.Cut(text, "/")
	k, err := strconv.Atoi(number)
	n, err2 := strconv.Atoi(count)
	if errors.Join(err, err2) != nil || k < 1 || k > n {
		return fmt.Errorf("%q is not a part; the first of three is 1/3", text)
	}
	*p = part{k, n}
	return nil
}

// choose takes each count-th, as neighbours in the table cost about the same.
func (p part) choose(all []mutant) []mutant {
	if p.count == 0 {
		return all
	}
	var chosen []mutant
	for i := p.number - 1; i < len(all); i += p.count {
		chosen = append(chosen, all[i])
	}
	return chosen
}
