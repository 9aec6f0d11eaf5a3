package elector_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/internal/fencing"
)

// An oblivious store may lose acknowledged writes.
type oblivious struct{ *memory.Backend }

func (f oblivious) Describe() backends.Description {
	d := f.Backend.Describe()
	d.Lossy = "it forgets"
	return d
}

// On a store that may lose acknowledged writes the lease, the leader and the log say so,
// and guards refuse. On another store none does.
func TestLossy(t *testing.T) {
	for _, lossy := range []string{"", "it forgets"} {
		synctest.Test(t, func(t *testing.T) {
			s := memory.New()
			var b backends.Backend = s
			if lossy != "" {
				b = oblivious{s}
			}
			var log strings.Builder
			e, err := elector.New(b, "bubble", &elector.Options{ID: "a", Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			l, err := e.TryCampaign(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leader, err := e.Leader(t.Context())
			if err != nil || leader.Lossy != lossy || l.Lossy() != lossy {
				t.Errorf("the leader is %+v, and the lease is lossy because %q; want %q", leader, l.Lossy(), lossy)
			}
			if warned := strings.Contains(log.String(), `level=WARN`) && strings.Contains(log.String(), `lossy="it forgets"`); warned != (lossy != "") {
				t.Errorf("the log has %s", log.String())
			}
			_, _, err = fencing.Acquisition[backends.Backend](l, "memory")
			if refused := errors.Is(err, backends.ErrMisconfigured) && strings.Contains(err.Error(), "it forgets"); refused != (lossy != "") || err != nil && lossy == "" {
				t.Errorf("a guard: %v", err)
			}
		})
	}
}
