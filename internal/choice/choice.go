// Package choice says which of many tests a command runs: a share of them, or those that
// a change touches.
package choice

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// A Share is the Number-th of Count shares, or everything if it is zero. It is the value of
// a flag.
type Share struct{ Number, Count int }

func (s *Share) String() string { return fmt.Sprintf("%d/%d", s.Number, s.Count) }

// Set implements [flag.Value].
func (s *Share) Set(text string) error {
	number, count, _ := strings.Cut(text, "/")
	k, err := strconv.Atoi(number)
	n, err2 := strconv.Atoi(count)
	if errors.Join(err, err2) != nil || k < 1 || k > n {
		return fmt.Errorf("%q is not a part; the first of three is 1/3", text)
	}
	*s = Share{k, n}
	return nil
}

// Of returns the share of all: each Count-th, as neighbours in a table cost about the same.
func Of[T any](s Share, all []T) []T {
	if s.Count == 0 {
		return all
	}
	var chosen []T
	for i := s.Number - 1; i < len(all); i += s.Count {
		chosen = append(chosen, all[i])
	}
	return chosen
}

// Turn returns all in their order, but beginning with another one for each commit.
func Turn[T any](all []T, commit string) []T {
	if len(all) == 0 {
		return all
	}
	begin := 0
	for _, c := range commit {
		begin = (begin*31 + int(c)) % len(all)
	}
	return append(all[begin:len(all):len(all)], all[:begin]...)
}

// Changed returns the files, by their paths below root, that differ between a revision and
// the tree.
func Changed(root, revision string) (map[string]bool, error) {
	cmd := exec.Command("git", "diff", "--name-only", "--relative", revision, "--")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git diff %s: %w; name a revision that this clone has", revision, err)
	}
	changed := map[string]bool{}
	for name := range strings.Lines(string(out)) {
		changed[strings.TrimSpace(name)] = true
	}
	return changed, nil
}
