package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestEtcd(t *testing.T)      { t.Parallel(); onThree(t, stores.Etcd) }
func TestZooKeeper(t *testing.T) { t.Parallel(); onThree(t, stores.ZooKeeper) }

// onThree runs the cases on one cluster, one after the other.
func onThree(t *testing.T, kind string) {
	c, err := stores.StartCluster(t.Context(), kind, 3)
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, c.Ready(ctx)) // NATS has the bucket then
	for _, k := range []struct {
		name  string
		round func(t *testing.T, s *scene, number int)
	}{
		{"part/follower", cutOff},
		{"part/leader-stopped", leaderStopped},
		{"part/store-restart", restarted},
		{"part/stale-read", staleRead},
	} {
		t.Run(k.name, func(t *testing.T) {
			s := newScene(t, c, k.name)
			for number := range rounds(t) {
				k.round(t, s, number)
			}
			verify(t, s.ended())
		})
	}
}

func rounds(t *testing.T) int {
	given := os.Getenv("ELECTOR_ROUNDS")
	if given == "" {
		return 2
	}
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 {
		t.Fatalf("ELECTOR_ROUNDS is %q; give a number from 1", given)
	}
	return n
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cutOff cuts the member that the holder uses off from the others, a follower
// and the store's leader in turn, for longer than the TTL.
func cutOff(t *testing.T, s *scene, number int) {
	at := s.leader(t)
	if number%2 == 0 {
		at = (at + 1) % 3
	}
	o := s.office(t, number, at)
	s.breaks(t, "member cut off", func() error { return s.cluster.Isolate(at) })
	s.successor(t, o)
	s.lasts(t)
	s.mends(t, history.Healed, "member cut off", func() error { return s.cluster.Join(at) })
	s.settles(t, o)
}

// leaderStopped stops the store's leader, to which the holder is connected, for
// longer than the TTL.
func leaderStopped(t *testing.T, s *scene, number int) {
	at := s.leader(t)
	o := s.office(t, number, at)
	s.tellStore(t, history.Stopped, "", s.cluster.Members[at].Pause)
	s.breaks(t, "no leader", func() error { return nil })
	s.successor(t, o)
	s.lasts(t)
	s.mends(t, history.Continued, "", s.cluster.Members[at].Continue)
	s.settles(t, o)
}

// restarted kills the store's leader, to which the holder is connected, and in
// every second round all of the store at once.
func restarted(t *testing.T, s *scene, number int) {
	at := s.leader(t)
	o := s.office(t, number, at)
	if number%2 == 0 {
		s.breaks(t, "leader killed", s.cluster.Members[at].Kill)
		s.successor(t, o)
		s.mends(t, history.Healed, "leader killed", func() error { return s.cluster.Members[at].Restart(t.Context()) })
	} else {
		s.breaks(t, "all killed", func() error { return s.cluster.Restart(t.Context()) })
		s.mends(t, history.Healed, "all killed", func() error { return nil })
	}
	s.settles(t, o)
}

// staleRead cuts off a follower to which a waiter and an observer are connected.
// The office changes hands meanwhile, and then they are connected again to a
// server that is behind.
func staleRead(t *testing.T, s *scene, number int) {
	behind := (s.leader(t) + 1) % 3
	o := s.office(t, number, (behind+1)%3)
	d := s.campaign(t, fmt.Sprintf("D%d", number), behind)
	o.all = append(o.all, d)
	s.awaitFrom(t, o.begun, d.name+" to wait", func(e history.Event) bool { return e.Kind == history.Waits && e.Candidate == d.name })
	s.breaks(t, "member cut off", func() error { return s.cluster.Isolate(behind) })
	s.lasts(t) // the waiter has seen no renewal for long enough to take over
	o.holder.stop(t)
	next := s.successor(t, o)
	if l := s.observers[behind].leader(); l.Token >= next.Token {
		t.Errorf("member %d, which is cut off, shows the new leader %v", behind, l)
	}
	s.mends(t, history.Healed, "member cut off", func() error { return s.cluster.Join(behind) })
	s.settles(t, o)
}

// An office is one round's candidates.
type office struct {
	holder *candidate
	begun  int // where in the history the round begins
	all    []*candidate
}

// office makes A the leader, through one member alone, and then has B and C
// wait, through the two others.
func (s *scene) office(t *testing.T, number, at int) *office {
	t.Helper()
	o := &office{begun: s.position()}
	o.holder = s.campaign(t, fmt.Sprintf("A%d", number), at)
	o.all = append(o.all, o.holder)
	s.awaitFrom(t, o.begun, o.holder.name+" to lead", func(e history.Event) bool {
		return e.Kind == history.Acquired && e.Candidate == o.holder.name
	})
	for i, name := range []string{"B", "C"} {
		c := s.campaign(t, fmt.Sprint(name, number), (at+1+i)%3)
		o.all = append(o.all, c)
		s.awaitFrom(t, o.begun, c.name+" to wait", func(e history.Event) bool { return e.Kind == history.Waits && e.Candidate == c.name })
	}
	return o
}

// successor waits until a candidate other than A leads.
func (s *scene) successor(t *testing.T, o *office) history.Event {
	t.Helper()
	return s.awaitFrom(t, o.begun, "a candidate other than "+o.holder.name+" to lead", func(e history.Event) bool {
		return e.Kind == history.Acquired && e.Valid && e.Candidate != o.holder.name
	})
}

// lasts waits until what was broken last has been so for longer than anybody
// waits for a leader: the fault's length is part of the case.
func (s *scene) lasts(t *testing.T) {
	t.Helper()
	over := time.NewTimer(s.broken + s.rules.Wait*3/2 - history.BootTime())
	defer over.Stop()
	select {
	case <-over.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// settles waits until a candidate leads and all observers have seen who, and ends
// the round.
func (s *scene) settles(t *testing.T, o *office) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	must(t, s.cluster.Ready(ctx))
	seen := s.await(t, "a leader at the end of the round", func(e history.Event) bool { return e.Kind == history.Checked && e.Valid })
	for _, w := range s.observers {
		w.catchesUp(t, seen.Token)
	}
	for _, c := range o.all {
		c.stop(t)
	}
}
