package main

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// members is how many processes a fleet has, but for the steps between.
const members = 10

// A step is a change of members.
type step struct {
	what  string
	moves int // the least possible
	times int // how many changes it is, one after the other
	do    func() error
}

func (f *fleet) starts() (cost, error) {
	return f.run(step{"start of 10 processes", f.partitions, 1, func() error {
		for i := range members {
			p, err := f.join(fmt.Sprintf("host-%d", i))
			if err != nil {
				return err
			}
			f.all = append(f.all, p)
		}
		return nil
	}})
}

func (f *fleet) oneJoins() (cost, error) {
	return f.run(step{"one joins", f.partitions / (members + 1), 1, func() error { return f.add("host-10") }})
}

func (f *fleet) itLeaves() (cost, error) {
	return f.run(step{"it leaves", f.partitions / (members + 1), 1, func() error {
		f.all[members].stop()
		f.all = f.all[:members]
		return nil
	}})
}

func (f *fleet) oneCrashes() (cost, error) {
	return f.run(step{"one is cut off", f.partitions / members, 1, func() error {
		f.all[3].meter.cut.Store(true)
		f.all[3].stop()
		f.all = append(f.all[:3:3], f.all[4:]...)
		return nil
	}})
}

func (f *fleet) oneComes() (cost, error) {
	return f.run(step{"one comes in its place", f.partitions / members, 1, func() error { return f.add("host-3") }})
}

func (f *fleet) oneIsReplaced() (cost, error) {
	return f.run(step{"one is replaced within Settle", f.partitions / members, 1, func() error {
		f.all[0].stop()
		f.all = f.all[1:]
		return f.add("host-0")
	}})
}

func (f *fleet) deploys() (cost, error) {
	return f.run(step{"a deploy of all, one by one", f.partitions, members, func() error {
		for i, p := range f.all {
			p.stop()
			next, err := f.join(p.id)
			if err != nil {
				return err
			}
			f.all[i] = next
			if err := errors.Join(f.shared(), <-p.done); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (f *fleet) add(id string) error {
	p, err := f.join(id)
	if err == nil {
		f.all = append(f.all, p)
	}
	return err
}

// stop ends all processes.
func (f *fleet) stop() (err error) {
	for _, p := range f.all {
		p.stop()
	}
	for _, p := range f.all {
		err = errors.Join(err, <-p.done)
	}
	return err
}

// rests counts what the members do while nothing changes.
func (f *fleet) rests() {
	renewals, reads := f.atRest(30 * time.Second)
	f.within("renewals a second, of all", renewals, 3)
	most := 0.0
	switch d := f.all[0].meter.Describe(); {
	case d.PushesRenewals && d.MaxLoads > 1:
		most = 1
	case d.MaxLoads > 1:
		most = 10
	}
	f.within("reads a second at rest, of all", reads, most)
}

// atRest counts renewals and reads a second for a while.
func (f *fleet) atRest(rest time.Duration) (renewals, reads float64) {
	time.Sleep(10 * time.Second) // what is left of the last step
	seats, loads := f.counts.seats.Load(), f.counts.reads.Load()
	time.Sleep(rest)
	renewals, reads = float64(f.counts.seats.Load()-seats)/rest.Seconds(), float64(f.counts.reads.Load()-loads)/rest.Seconds()
	f.idle = renewals + reads
	return renewals, reads
}

// within prints a figure, and checks it if most is not 0.
func (f *fleet) within(what string, count, most float64) {
	verdict := ""
	if most > 0 && count > most {
		verdict = fmt.Sprintf("  OVER: at most %.0f", most)
		f.failed = append(f.failed, fmt.Errorf("%s: %.2f; at most %.0f", what, count, most))
	}
	fmt.Printf("%-40s %8.2f%s\n", what, count, verdict)
}

// heap returns the bytes in use of the heap.
func heap() int64 {
	for range 3 { // what pools keep goes in the second
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
