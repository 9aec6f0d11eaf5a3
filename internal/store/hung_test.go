package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A request that is given up ends at once, and the others of its batch go on; with the last
// one the batch is given up.
func TestGivenUp(t *testing.T) {
	inBubble(t, func(s *scene) {
		full := s.fill()
		var both []*Request
		for _, name := range []string{"a", "b"} {
			both = append(both, s.swap(name, Ask{}))
		}
		s.free(full[:1], nil)
		sent := s.gate.arrived()
		if len(sent) != 1 || len(sent[0].names) != 2 {
			s.Fatalf("they went as %v", names(sent))
		}
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(s.Context())
		cancel()
		for i, r := range both {
			if o, unsent := r.Wait(ctx); unsent || !errors.Is(o.Err, context.Canceled) || !strings.Contains(o.Err.Error(), "no answer within 1s") {
				s.Errorf("%d is given up: %v, unsent %v", i, o.Err, unsent)
			}
			if ended := sent[0].ctx.Err() != nil; ended != (i == 1) {
				s.Errorf("after %d the request has ended: %v", i, ended)
			}
		}
	})
}

// A request that the backend does not return from gives up its place a moment after its time
// is over, and once.
func TestHung(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.gate.deaf = true
		defer s.client().Swapping().Leave() // so that the handle stays
		start := time.Now()
		full := s.fill()
		next := s.swap("next", Ask{})
		time.Sleep(time.Minute - time.Since(start))
		if got := names(s.gate.arrived()); len(got) != 0 {
			s.Errorf("%v go while all places are taken", got)
		}
		time.Sleep(lastWord + longestGrace)
		sent := s.gate.arrived()
		if got := names(sent); len(got) != 1 || !slices.Equal(got[0], []string{"next"}) {
			s.Errorf("when a place is free again, %v go", got)
		}
		time.Sleep(wires * longestHold)
		s.free(append(sent, full...), nil)
		if o, _ := next.Wait(s.Context()); o.Err != nil {
			s.Error(o.Err)
		}
		for i := range 2 * wires {
			s.swap(fmt.Sprint(i), Ask{Alone: true})
		}
		sent = s.gate.arrived()
		if len(sent) != wires {
			s.Errorf("when all have returned, %d go, not %d", len(sent), wires)
		}
		s.free(sent, nil)
	})
}

// Requests that hang have their places for a moment, also when nobody waits for them any more.
func TestHandleStays(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.gate.deaf = true
		for i := range wires {
			s.swap(fmt.Sprint(i), Ask{Alone: true})
		}
		full := s.gate.arrived()
		time.Sleep(time.Minute + 2*lastWord)
		s.swap("next", Ask{})
		if got := names(s.gate.arrived()); len(full) != wires || len(got) != 0 {
			s.Errorf("%v go while %d are under way", got, len(full))
		}
		s.free(full, nil)
	})
}

// A batch that hangs counts once for each of its clients.
func TestHungOnce(t *testing.T) {
	inBubble(t, func(s *scene) {
		s.gate.deaf = true
		c := s.client()
		defer c.Swapping().Leave()
		changes := make([]backends.Change, 2*mostHung)
		for i := range changes {
			changes[i].Name = fmt.Sprint(i)
		}
		for _, o := range c.SwapAll(s.Context(), changes, time.Minute) {
			if o.Err == nil {
				s.Error("a swap without an answer has an outcome")
			}
		}
		next := s.swapBy(c, "next", Ask{Rank: Gain})
		sent := s.gate.arrived()
		if got := names(sent); len(got) != 2 || len(got[0]) != len(changes) || got[1][0] != "next" {
			s.Errorf("%v were sent", got)
		}
		s.free(sent, nil)
		if o, _ := next.Wait(s.Context()); o.Err != nil {
			s.Error(o.Err)
		}
	})
}
