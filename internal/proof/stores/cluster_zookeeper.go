package stores

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

// Where the servers of a ZooKeeper cluster talk to one another: a follower to
// its leader, and everybody to elect one.
type zooKeeperPorts struct{ quorum, election int }

// zooKeeperCluster says how the servers of a cluster are run, and opens the
// gates between them: two for each pair and direction, as each server has a
// configuration of its own, in which the others are where their gates are.
func zooKeeperCluster(c *Cluster, _ string, n int) ([]recipe, error) {
	c.ask = zooKeeperAsker{}
	quorums, elections := make([]atomic.Int32, n), make([]atomic.Int32, n)
	seen := make([][]zooKeeperPorts, n) // by who looks, and at whom
	for i := range n {
		seen[i] = make([]zooKeeperPorts, n)
		for j := range n {
			if i == j {
				continue
			}
			quorum, err := c.network.newGate(i, j, &quorums[j], nil)
			if err != nil {
				return nil, err
			}
			election, err := c.network.newGate(i, j, &elections[j], func(c *crossing) error { return zooKeeperGreet(c, seen[j][i].election) })
			if err != nil {
				return nil, err
			}
			seen[i][j] = zooKeeperPorts{quorum.port(), election.port()}
		}
	}
	var recipes []recipe
	for i := range n {
		r, err := zooKeeperRecipe(quick)
		if err != nil {
			return nil, err
		}
		r.prepare = func(_ context.Context, s *server) error {
			return errors.Join(os.Mkdir(zooKeeperData(s), 0o755),
				os.WriteFile(filepath.Join(zooKeeperData(s), "myid"), []byte(strconv.Itoa(i+1)), 0o644))
		}
		r.before = func(s *server) error {
			own, err := chooseZooKeeperPorts(s)
			if err != nil {
				return err
			}
			quorums[i].Store(int32(own.quorum))
			elections[i].Store(int32(own.election))
			settings := zooKeeperSettings(quick, zooKeeperData(s), "127.0.0.1", s.port) + zooKeeperServers(i, own, seen[i])
			return os.WriteFile(zooKeeperConfig(s), []byte(settings), 0o644)
		}
		java := r.arguments
		r.arguments = func(s *server) []string {
			// By default the pauses between the rounds of an election grow to a minute.
			return append([]string{"-Dzookeeper.fastleader.maxNotificationInterval=1000"}, java(s)...)
		}
		recipes = append(recipes, r)
	}
	return recipes, nil
}

// zooKeeperServers are the settings of server i for its cluster: the others are
// where it sees them. Ticks last 200 ms. A follower and a leader that do not
// hear of each other for syncLimit ticks part.
func zooKeeperServers(i int, own zooKeeperPorts, others []zooKeeperPorts) string {
	settings := "initLimit=25\nsyncLimit=5\n"
	for j, at := range others {
		if j == i {
			at = own
		}
		settings += fmt.Sprintf("server.%d=127.0.0.1:%d:%d\n", j+1, at.quorum, at.election)
	}
	return settings
}

// chooseZooKeeperPorts makes the port for followers follow from the clients':
// only a leader listens there, and what a follower does not use another process
// could take before it becomes the leader. Neither a store nor a proxy is given such
// ports, and the clients' port is taken for as long as the server runs.
func chooseZooKeeperPorts(s *server) (ports zooKeeperPorts, err error) {
	ports.quorum = s.port - 12000 // below all that freePort returns
	l, err := net.Listen("tcp", loopback(ports.quorum))
	if err != nil {
		return ports, errPortTaken
	}
	l.Close()
	ports.election, err = choosePort()
	return ports, err
}

// zooKeeperGreet changes where the server that connects says it can be reached:
// one with a higher number hangs up and calls back there, which has to be the
// gate's port and not its own.
//
// The message is a version of the protocol, the server's number, and the
// length and the text of its address.
func zooKeeperGreet(c *crossing, port int) error {
	const version = -65536
	head := make([]byte, 8+8+4)
	if _, err := io.ReadFull(c.client, head); err != nil {
		return err
	}
	if got := int64(binary.BigEndian.Uint64(head)); got != version {
		return fmt.Errorf("version %d of the election's protocol is not known here", got)
	}
	if _, err := io.CopyN(io.Discard, c.client, int64(binary.BigEndian.Uint32(head[16:]))); err != nil {
		return err
	}
	address := loopback(port)
	binary.BigEndian.PutUint32(head[16:], uint32(len(address)))
	return c.send(append(head, address...))
}

type zooKeeperAsker struct{}

// answers opens a session, which is a change that a majority has to accept. It
// ends by itself, soon.
func (zooKeeperAsker) answers(ctx context.Context, s *Store) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	// Its length, version 0, nothing seen, the timeout in milliseconds, no
	// session to go on with, and 16 bytes for no password.
	request := binary.BigEndian.AppendUint32(nil, 4+8+4+8+4+16)
	request = append(request, make([]byte, 4+8)...)
	request = binary.BigEndian.AppendUint32(request, 400)
	request = append(request, make([]byte, 8)...)
	request = binary.BigEndian.AppendUint32(request, 16)
	request = append(request, make([]byte, 16)...)
	if _, err := conn.Write(request); err != nil {
		return err
	}
	// Its length, the version, the timeout and the session.
	answer := make([]byte, 4+4+4+8)
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("no session: %w", err)
	}
	if binary.BigEndian.Uint64(answer[12:]) == 0 {
		return errors.New("it refuses a session")
	}
	return nil
}

// leads asks for a server's mode. The upper half of its last transaction's
// number is the epoch.
func (zooKeeperAsker) leads(ctx context.Context, s *Store) (leads bool, epoch uint64, err error) {
	said, err := zooKeeperAsk(ctx, s.Address, "srvr")
	if err != nil {
		return false, 0, err
	}
	serves := false
	for line := range strings.Lines(said) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zxid":
			zxid, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return false, 0, fmt.Errorf("its Zxid: %w", err)
			}
			epoch = zxid >> 32
		case "Mode":
			serves, leads = true, value == "leader"
		}
	}
	if !serves {
		return false, 0, fmt.Errorf("it says %q", strings.TrimSpace(said))
	}
	return leads, epoch, nil
}
