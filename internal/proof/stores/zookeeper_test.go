package stores

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/conformance"
)

func TestZooKeeper(t *testing.T) {
	s := obtain(t, ZooKeeper)
	z := zooKeeperTree(t, s)
	conform(t, ZooKeeper, s.How, conformance.Harness{
		Open:         opener(s.URL + "/suite"),
		OpenReadOnly: readOnlyOpener(s.URL + "/suite"),
		OpenFaulty:   faulty(s, s.URL+"/suite"),
		Slow:         true,
		MaxContent:   1_000_000, // roughly
		Raw:          &conformance.Raw{Get: z.get, Put: z.put, Delete: z.delete, Depose: z.depose},
		Setups:       zooKeeperSetups(s, z),
	})
}

// A tree reaches the znodes behind the adapter's back; the records are below
// /suite.
type tree struct{ conn *zk.Conn }

func zooKeeperTree(t testing.TB, s *Store) tree {
	conn, _, err := zk.Connect([]string{s.Address}, 30*time.Second, zk.WithLogger(silence{}), zk.WithLogInfo(false))
	must(t, err)
	t.Cleanup(conn.Close)
	z := tree{conn}
	z.make(t, "/suite", "", 0, zk.WorldACL(zk.PermAll))
	return z
}

type silence struct{}

func (silence) Printf(string, ...any) {}

// make creates a znode unless it is there.
func (z tree) make(t testing.TB, path, data string, flags int32, acl []zk.ACL) {
	t.Helper()
	if _, err := z.conn.Create(path, []byte(data), flags, acl); !errors.Is(err, zk.ErrNodeExists) {
		must(t, err)
	}
}

// get returns what follows the line that a record begins with. That line is
// the adapter's affair, and a test that changes a record by hand leaves it as it
// is.
func (z tree) get(t testing.TB, name string) []byte {
	data, _, err := z.conn.Get("/suite/" + name)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	must(t, err)
	_, content := guardLine(data)
	return append([]byte{}, content...)
}

func guardLine(data []byte) (line, rest []byte) {
	end := bytes.IndexByte(data, '\n') + 1
	return data[:end:end], data[end:]
}

func (z tree) put(t testing.TB, name string, content []byte) {
	path := "/suite/" + name
	for {
		old, stat, err := z.conn.Get(path)
		if errors.Is(err, zk.ErrNoNode) {
			break
		}
		must(t, err)
		line, _ := guardLine(old) // an acquisition meanwhile changes it
		_, err = z.conn.Set(path, append(line, content...), stat.Version)
		if errors.Is(err, zk.ErrBadVersion) {
			continue
		}
		must(t, err)
		return
	}
	guard, acl := rand.Text(), zk.WorldACL(zk.PermAll)
	_, err := z.conn.Multi(
		&zk.CreateRequest{Path: path, Data: append([]byte("guard "+guard+"\n"), content...), Acl: acl},
		&zk.CreateRequest{Path: path + "/guard-" + guard, Acl: acl})
	must(t, err)
}

// depose removes the leader's node, as an operator would.
func (z tree) depose(t testing.TB, name string) {
	must(t, z.conn.Delete("/suite/"+name+"/leader", -1))
}

// delete removes a record and what is below it at once. A holder may come or
// go meanwhile; then nothing was removed.
func (z tree) delete(t testing.TB, name string) {
	for {
		path := "/suite/" + name
		children, _, err := z.conn.Children(path)
		must(t, err)
		var ops []any
		for _, child := range children {
			ops = append(ops, &zk.DeleteRequest{Path: path + "/" + child, Version: -1})
		}
		_, err = z.conn.Multi(append(ops, &zk.DeleteRequest{Path: path, Version: -1})...)
		if errors.Is(err, zk.ErrNotEmpty) || len(ops) > 0 && errors.Is(err, zk.ErrNoNode) {
			continue
		}
		must(t, err)
		return
	}
}

// zooKeeperSetups are servers, logins and paths that do not serve.
func zooKeeperSetups(s *Store, z tree) map[string]func(testing.TB) error {
	anyone, another := zk.WorldACL(zk.PermAll), zk.DigestACL(zk.PermAll, "another", "secret")
	mallory := Login{"mallory", "not-the-password"}
	below := func(path, data string, flags int32, acl []zk.ACL, rest string) func(testing.TB) error {
		return func(t testing.TB) error {
			z.make(t, path, data, flags, acl)
			return openError(t, s.URL+path+rest)
		}
	}
	return map[string]func(testing.TB) error{
		"no server":            func(t testing.TB) error { return openError(t, "zookeeper://"+vacantAddress(t)) },
		"an unknown parameter": func(t testing.TB) error { return openError(t, s.URL+"/suite?session=30s") },
		"a path of ZooKeeper's own": func(t testing.TB) error {
			return openError(t, s.URL+"/zookeeper/elector")
		},
		"TLS, with a server that has none": func(t testing.TB) error {
			return openError(t, "zookeepers://"+s.Address+"/suite")
		},
		"another kind of server": func(t testing.TB) error { return openError(t, "zookeeper://"+webServer(t)) },
		"another's prefix":       below("/denied", "", 0, another, ""),
		"a prefix that another must make": below("/closed", "", 0,
			zk.WorldACL(zk.PermRead), "/elector"),
		"a wrong password": func(t testing.TB) error {
			z.make(t, "/secured", "", 0, zk.DigestACL(zk.PermAll, mallory.User, "the-password"))
			return openError(t, mallory.In(s.URL+"/secured"))
		},
		"an ephemeral prefix":      below("/ephemeral", "", zk.FlagEphemeral, anyone, ""),
		"below an ephemeral znode": below("/ephemeral", "", zk.FlagEphemeral, anyone, "/elector"),
		"a prefix that holds data": below("/data", "leader=host-1", 0, anyone, ""),
		"a record in the prefix's place": func(t testing.TB) error {
			z.put(t, "record", []byte("{}"))
			return openError(t, s.URL+"/suite/record")
		},
	}
}

// webServer answers everybody as a web server does, who speaks ZooKeeper's
// protocol to it.
func webServer(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return l.Addr().String()
}
