package elector

import (
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/annex"
)

// A place in line that others write is read or counts as none; what is written is read
// as it was.
func FuzzSteering(f *testing.F) {
	for _, s := range []string{"", " ", "5 host-2", "5 ", "5 %zz", "x host-2", "5 a b"} {
		f.Add(s, "host-2", uint64(5))
	}
	f.Fuzz(func(t *testing.T, value, id string, token uint64) {
		r := backends.Record{Holder: "leader", Token: token, Version: "1"}
		if got := inPlace(value, r); got != "" && annex.CheckID(got) != nil {
			t.Errorf("the place %q is that of %q", value, got)
		}
		if annex.CheckID(id) != nil || token == 0 || token > backends.MaxToken {
			return
		}
		place := annex.Join(Token(token).String(), id)
		if inPlace(place, r) != id || len(place) > backends.MaxPlace {
			t.Errorf("the place of %q is written as %q and read as %q", id, place, inPlace(place, r))
		}
	})
}
