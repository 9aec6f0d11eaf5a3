package postgres

import (
	"errors"
	"strconv"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// An election with a write that has had no answer is not read with others: what is
// visible may be on no standby.
func TestLoadMany(t *testing.T) {
	s, b := cannedBackend(t)
	r := check.Good()
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	s.answers([]uint32{25, 25, 23, 25, 20, 20, 20, 25, 25, 25}, [][]byte{[]byte("off"), []byte(check.Election), number(backends.Schema), []byte(r.Holder), number(int64(r.Token)),
		number(int64(r.TTL)), number(int64(r.RenewEvery)), []byte(r.Attempt.String()), []byte(r.Value), []byte(r.Extensions)})
	read := func() []backends.Outcome {
		return b.LoadMany(t.Context(), []string{"other", check.Election, check.Election})
	}
	before := read()
	if before[0] != (backends.Outcome{}) || before[1].Err != nil || before[1].Record.Holder != r.Holder || before[1] != before[2] {
		t.Fatalf("got %+v", before)
	}
	t.Run("in doubt", func(t *testing.T) {
		b.doubts.add(check.Election, before[1].Record.Version)
		for i, o := range read() {
			if i == 0 && o.Err != nil || i > 0 && (!errors.Is(o.Err, backends.ErrNotTried) || o.Record.Exists()) {
				t.Errorf("outcome %d is %+v", i, o)
			}
		}
		b.doubts.end(check.Election, before[1].Record.Version)
	})
	t.Run("another row", func(t *testing.T) {
		if o := b.LoadMany(t.Context(), []string{"other"})[0]; !errors.Is(o.Err, backends.ErrNotTried) {
			t.Errorf("a row that was not asked for: %+v", o)
		}
	})
}
