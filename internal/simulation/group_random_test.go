package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/partition"
)

// TestGroups runs a fifth of the seeds, each a short life of a group in which everything goes wrong:
// at most one owner of each partition, tokens that grow, and even shares soon after
// troubles have ended.
func TestGroups(t *testing.T) {
	if *seedFlag != 0 {
		f := randomFleet(t, *seedFlag)
		t.Logf("seed %d: %v\n%s", *seedFlag, f.counts, f.history.tail(1e9))
		return
	}
	var mutex sync.Mutex
	total := map[string]int{}
	var longest time.Duration
	overSeeds(t, (*seedsFlag+4)/5, func(seed uint64) {
		f := randomFleet(t, seed)
		mutex.Lock()
		defer mutex.Unlock()
		for kind, n := range f.counts {
			total[kind] += n
		}
		longest = max(longest, f.spoiled[settledAfter])
	})
	var lines []string
	for kind, n := range total {
		lines = append(lines, fmt.Sprintf("%-28s %d", kind, n))
	}
	slices.Sort(lines)
	t.Logf("settled after at most %v without spoiled records\n%s", longest, strings.Join(lines, "\n"))
}

// settledAfter is where a fleet notes how long it took to settle.
const settledAfter = 1 << 30

// randomFleet is one seed.
func randomFleet(t *testing.T, seed uint64) *fleet {
	d := newDice(seed, 40)
	return withFleet(t, seed, 1+d.below(24), func(f *fleet) {
		spoils := d.chance(0.5)
		loses := 0.0
		if spoils && d.chance(0.5) {
			loses = 0.02
		}
		faulty := []float64{0, 0.02, 0.1, 0.25}[d.below(4)]
		if d.chance(0.3) {
			f.options.Elector.ReleaseTimeout = d.between(groupTTL/4, groupTTL)
		}
		batches := []int{1, 7, 100}[d.below(3)]
		join := func() {
			f.join(func(m *member, o *partition.Options) {
				m.wire.faulty, m.wire.loses, m.wire.batches = faulty, loses, batches
				m.wire.watches, m.wire.prompt = d.chance(0.5), false
				m.machine.drift(0.9 + 0.2*d.float())
				m.machine.noBoot = d.chance(0.1)
			})
		}
		for range 1 + d.below(6) {
			join()
			time.Sleep(d.between(0, groupTTL))
		}
		if spoils {
			time.Sleep(8 * groupTTL) // while it is founding a deleted record is taken at once
		}
		for end := f.now() + 60*groupTTL; f.now() < end; {
			f.fault(d, spoils, join)
			if alive := f.alive(); len(alive) > 0 && d.chance(0.3) {
				m, other := alive[d.below(len(alive))], alive[d.below(len(alive))]
				undrain := d.chance(0.4)
				go func() {
					ctx, cancel := context.WithTimeout(context.Background(), groupTTL)
					defer cancel()
					var err error
					if undrain {
						err = m.group.UndrainMember(ctx, other.name)
					} else {
						err = m.group.DrainMember(ctx, other.name)
					}
					f.history.add(m.name, "drain %s, undrain %v: %v", other.name, undrain, err)
				}()
			}
			time.Sleep(d.between(0, 2*groupTTL))
		}
		f.relieve()
		if len(f.alive()) == 0 {
			join()
		}
		time.Sleep(2 * groupTTL)
		for _, m := range f.alive() {
			for range 40 {
				alive := f.alive()
				if len(alive) == 0 {
					break
				}
				ctx, cancel := context.WithTimeout(context.Background(), groupTTL)
				err := alive[len(alive)-1].group.UndrainMember(ctx, m.name)
				cancel()
				if err == nil {
					break
				}
				f.history.add("fleet", "undrain %s: %v", m.name, err)
				time.Sleep(groupEvery)
			}
		}
		bound := 12 * groupTTL
		if spoils {
			bound += 2 * auditBound()
		}
		took := f.settles(bound)
		if !spoils {
			f.spoiled[settledAfter] = took
		}
	})
}

// fault lets something go wrong.
func (f *fleet) fault(d *dice, spoils bool, join func()) {
	alive := f.alive()
	if len(alive) == 0 {
		join()
		return
	}
	m := alive[d.below(len(alive))]
	length := d.between(0, 3*groupTTL)
	kind := d.below(12)
	if kind >= 8 && !spoils {
		kind -= 8
	}
	switch kind {
	case 0:
		m.machine.pause(length)
	case 1:
		m.machine.suspend(length)
	case 2:
		m.wire.cut(true)
		time.AfterFunc(length, func() { m.wire.cut(false) })
	case 3:
		m.crash()
		if d.chance(0.7) {
			join()
		}
	case 4:
		m.stop()
		m.gone.Store(true)
		if d.chance(0.7) {
			join()
		}
	case 5:
		if len(alive) < 8 {
			join()
		}
	case 6:
		m.machine.drift(0.9 + 0.2*d.float())
	case 7:
		for _, m := range alive {
			m.wire.cut(true)
		}
		time.AfterFunc(length, func() {
			for _, m := range alive {
				m.wire.cut(false)
			}
		})
	case 8:
		f.spoil(fmt.Sprintf("group.seat.%d", d.below(len(alive))), nil)
	case 9:
		f.spoil("group.plan", nil)
	case 10:
		f.spoil(record(d.below(f.options.Partitions)), nil)
	case 11:
		f.store.Put(record(d.below(f.options.Partitions)), []byte(`{"somebody":"else's"}`))
	}
	f.hit([]string{"paused", "suspended", "cut off", "crashed", "told to leave", "joined", "clock rate changed", "all cut off", "seat deleted", "plan deleted", "partition deleted", "partition overwritten"}[kind], m)
}

// crash stops a member for good.
func (m *member) crash() {
	m.crashed.Store(true)
	m.machine.pause(10000 * time.Hour)
	m.wire.cut(true)
}

// relieve ends all faults: people remove what they have overwritten.
func (f *fleet) relieve() {
	f.mutex.Lock()
	f.settle = true
	f.mutex.Unlock()
	for n := range f.options.Partitions {
		if strings.Contains(string(f.store.Get(record(n))), "somebody") {
			f.spoil(record(n), nil)
		}
	}
	for _, m := range f.alive() {
		m.wire.cut(false)
		m.machine.wake()
	}
}
