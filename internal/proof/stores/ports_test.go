package stores

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

// No t.Parallel in this file: its tests replace choosePort.
func TestTakenPort(t *testing.T) {
	defer func() { choosePort = freePort }()
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			taken := l.Addr().(*net.TCPAddr).Port
			calls := 0
			choosePort = func() (int, error) {
				if calls++; calls == 1 {
					return taken, nil
				}
				return freePort()
			}
			s := begin(t, kind)
			if calls != 2 {
				t.Errorf("%d ports were chosen, want 2", calls)
			}
			put(t, open(t, s), "v")

			choosePort = func() (int, error) { return taken, nil }
			if s, err := StartLocal(t.Context(), kind); !errors.Is(err, errPortTaken) {
				t.Errorf("with every port taken: %v, %v", s, err)
			}
		})
	}
}

// A port that was chosen is not chosen again while its server may be down.
func TestPortsDiffer(t *testing.T) {
	r, err := newPortRange("")
	must(t, err)
	seen := map[int]bool{}
	for range 1000 {
		port, err := r.free()
		must(t, err)
		if seen[port] {
			t.Fatalf("port %d was chosen twice", port)
		}
		seen[port] = true
	}
}

// Where nearly all ports are taken, the free one is found, and an error names the range.
func TestPortsNearlyUsedUp(t *testing.T) {
	all, err := newPortRange("")
	must(t, err)
	var first int
	var held []net.Listener
	defer func() {
		for _, l := range held {
			l.Close()
		}
	}()
	const count = 20
	for first = all.first; len(held) < count; first++ { // so many in a row
		l, err := net.Listen("tcp", loopback(first))
		if err == nil {
			held = append(held, l)
			continue
		}
		for _, l := range held {
			l.Close()
		}
		held = nil
	}
	r, err := newPortRange(fmt.Sprintf("%d-%d", first-count, first-1))
	must(t, err)
	if port, err := r.free(); err == nil || !strings.Contains(err.Error(), strconv.Itoa(first-1)) {
		t.Errorf("with every port taken: %d, %v", port, err)
	}
	free := held[7].Addr().(*net.TCPAddr).Port
	must(t, held[7].Close())
	if port, err := r.free(); err != nil || port != free {
		t.Errorf("with one port left: %d, %v, want %d", port, err, free)
	}
	for _, bad := range []string{"1-2", "20000", "20010-20000", "a-b"} {
		if _, err := newPortRange(bad); err == nil || !strings.Contains(err.Error(), PortsVariable) {
			t.Errorf("%q is taken for a range: %v", bad, err)
		}
	}
}

// A server of the same kind on the chosen port answers, but is not ours.
func TestPortTakenByTheSameKind(t *testing.T) {
	defer func() { choosePort = freePort }()
	each(t, func(t *testing.T, first *Store) {
		calls := 0
		choosePort = func() (int, error) {
			if calls++; calls == 1 {
				return ours(first).port, nil
			}
			return freePort()
		}
		second := begin(t, first.Kind)
		if second.Address == first.Address {
			t.Fatal("two stores have one address")
		}
	})
}

// Another process may take the port of a killed server, one of the same kind too.
func TestRestartWhenThePortIsTaken(t *testing.T) {
	defer func() { choosePort = freePort }()
	each(t, func(t *testing.T, s *Store) {
		must(t, s.Kill())
		choosePort = func() (int, error) { return ours(s).port, nil }
		other := begin(t, s.Kind)
		if err := s.Restart(t.Context()); !errors.Is(err, errPortTaken) {
			t.Errorf("Restart says %v", err)
		}
		choosePort = freePort
		must(t, other.Stop())
		must(t, s.Restart(t.Context()))
		expect(t, open(t, s), "")
	})
}
