package elector

import (
	"github.com/elector-go/elector/internal/clock"
	"github.com/elector-go/elector/internal/inject"
)

// init gives internal/inject what this package does not export.
func init() {
	inject.Machine = func(options any, c clock.Clock, random func() uint64) {
		o := options.(*Options)
		o.clock, o.random = c, random
	}
	inject.Seat = func(options any) { options.(*Options).seat = true }
	inject.Ended = func(lease any) <-chan struct{} { return lease.(*Lease).ended }
	inject.Abandon = func(lease any, cause error) {
		l := lease.(*Lease)
		l.writeRelease(workPanicked)
		l.move(lost, none, l.lostBecause(cause))
	}
	inject.Inside = func(e any) inject.Parts {
		elector := e.(*Elector)
		return inject.Parts{Options: elector.o, Clock: elector.clock, Random: elector.o.random, View: &elector.view}
	}
}
