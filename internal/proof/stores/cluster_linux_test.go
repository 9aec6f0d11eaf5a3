package stores

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// meetAtGates shows that no connection runs from one member to another without
// a gate in between, after an election too, in which ZooKeeper's servers tell
// one another where they are.
func meetAtGates(t *testing.T, c *Cluster) {
	old := leader(t, c)
	must(t, c.Members[old].Kill())
	ready(t, c)
	must(t, c.Members[old].Restart(t.Context()))
	ready(t, c)
	var pids []int
	for _, m := range c.Members {
		pids = append(pids, m.PID)
	}
	owners := ends(t, append(pids, os.Getpid()))
	met := 0
	for end, owner := range owners {
		other := owners[end.reverse()]
		switch {
		case other == 0 || owner == other:
		case owner == os.Getpid():
			met++
		case other != os.Getpid():
			t.Errorf("process %d is connected to process %d, with no gate in between", owner, other)
		}
	}
	if met < 4 {
		t.Errorf("only %d connections of members to gates were found", met)
	}
}

// An end of a connection on this machine, by its own port and the other's.
type end struct{ own, other string }

func (e end) reverse() end { return end{e.other, e.own} }

// ends returns which process holds each end of the connections that there are.
func ends(t *testing.T, pids []int) map[end]int {
	t.Helper()
	holders := map[string]int{} // of sockets
	for _, pid := range pids {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		must(t, err)
		for _, file := range files {
			if target, err := os.Readlink(file); err == nil { // it may have been closed
				holders[target] = pid
			}
		}
	}
	found := map[end]int{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		content, err := os.ReadFile(table)
		must(t, err)
		for line := range strings.Lines(string(content)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "01" { // established
				continue
			}
			if pid := holders["socket:["+f[9]+"]"]; pid != 0 {
				found[end{port(f[1]), port(f[2])}] = pid
			}
		}
	}
	return found
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
