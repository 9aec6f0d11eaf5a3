// Package electorgocron runs the jobs of gocron's schedulers on one process of many,
// with elections of package elector.
//
// [Elector] is gocron's Elector: one process leads, and runs all jobs. [Locker] is
// gocron's Locker: each job is an election of its own, and the process that locks it
// first runs it. With an Elector the jobs stay on one process, and a tick costs no
// request to the store. With a Locker the jobs spread over the processes, a crash
// concerns only the jobs that the process ran, and each tick costs requests. A
// scheduler that has both uses the Elector alone (gocron v2.21.2, executor.go, runJob).
//
// # What is promised
//
// A tick runs on at most one process, as long as the processes' clocks and timers
// differ by less than the minimum hold. That is the time for which a process that ran
// a tick keeps the others from it, also if it stops, crashes, or loses contact with
// the store: otherwise a process whose clock is behind would run a short job again.
//
// A tick can be missed; no tick is repeated. With an Elector the ticks between a crash
// and the next leader are missed: TTL*(1+ClockDrift) after the last renewal, and on a
// store that is polled the time of a poll. After a planned stop, those of up to the
// minimum hold are. With a Locker they are those of the jobs that the process ran or
// held. A job that its process did not finish is not run again until its next tick. If
// each tick must run, let the job work from a checkpoint, so that the next run does
// what is left: see docs/choose.md.
//
// # Jobs
//
// gocron does not stop a job whose lease is lost, and does not tell it. A job whose
// effect must not happen twice gets its lease from [Elector.Lease] or [Locker.Lease],
// calls Check before each side effect, and sends the fencing token along. The context
// of a job is made before the lease, so it cannot carry it (scheduler.go,
// addOrUpdateJob).
//
// gocron v2.21.2 drops the error of a Locker, unless an event listener takes it:
//
//	gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, job string, err error) { … }))
//
// ErrHeld is the usual one: another process runs the job.
package electorgocron

import (
	"time"

	"github.com/go-co-op/gocron/v2"
)

// DefaultMinHold is the minimum hold that 0 stands for.
const DefaultMinHold = 2 * time.Second

var (
	_ gocron.Elector = (*Elector)(nil)
	_ gocron.Locker  = (*Locker)(nil)
)
