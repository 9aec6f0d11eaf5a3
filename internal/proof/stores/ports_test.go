package stores

import (
	"errors"
	"net"
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
	seen := map[int]bool{}
	for range 1000 {
		port, err := freePort()
		must(t, err)
		if seen[port] {
			t.Fatalf("port %d was chosen twice", port)
		}
		seen[port] = true
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
