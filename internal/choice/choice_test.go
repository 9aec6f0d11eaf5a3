package choice

import (
	"slices"
	"strings"
	"testing"
)

func TestShares(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	var got []string
	for _, text := range []string{"1/3", "2/3", "3/3"} {
		var s Share
		if err := s.Set(text); err != nil || s.String() != text {
			t.Fatalf("%s is %v, %v", text, &s, err)
		}
		got = append(got, Of(s, all)...)
	}
	slices.Sort(got)
	if !slices.Equal(got, all) {
		t.Errorf("three shares have %v", got)
	}
	if !slices.Equal(Of(Share{}, all), all) {
		t.Error("no share is not everything")
	}
	for _, text := range []string{"", "1", "0/3", "4/3", "-1/3", "1/3/5", "1/0", "a/b"} {
		if err := new(Share).Set(text); err == nil {
			t.Errorf("%q is taken for a share", text)
		}
	}
}

func TestTurn(t *testing.T) {
	all := []int{1, 2, 3}
	begins := map[int]bool{}
	for _, commit := range []string{"", "a", "b", "c", "d"} {
		got := Turn(all, commit)
		begins[got[0]] = true
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("a turn of %v has %v", all, got)
		}
	}
	if len(begins) < 2 {
		t.Error("each commit begins with the same one")
	}
	if len(Turn([]int{}, "a")) != 0 {
		t.Error("a turn of nothing has something")
	}
}

func TestUnknownRevision(t *testing.T) {
	if changed, err := Changed(".", "no-such-revision"); err == nil || !strings.Contains(err.Error(), "no-such-revision") {
		t.Errorf("it says %v, %v", changed, err)
	}
}
