package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// startZooKeeper starts a single ZooKeeper server.
func startZooKeeper(ctx context.Context, m manner) (*Store, error) {
	r, err := zooKeeperRecipe(m)
	if err != nil {
		return nil, err
	}
	s, err := newServer(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    ZooKeeper,
		How:     "local process " + s.name + " (Debian's packages)",
		URL:     "zookeeper://" + s.address(),
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}, nil
}

// zooKeeperRecipe says how a single server is run.
func zooKeeperRecipe(m manner) (recipe, error) {
	java, err := binaries.Java()
	if err != nil {
		return recipe{}, err
	}
	classes, err := binaries.ZooKeeper()
	if err != nil {
		return recipe{}, fmt.Errorf("%w; run make stores", err)
	}
	return recipe{
		name:    "ZooKeeper " + binaries.ZooKeeperVersion,
		program: java,
		arguments: func(s *server) []string {
			return slices.Concat(zooKeeperJava(m), []string{
				"-XX:-UsePerfData", // a file outside its folder, which a killed one leaves
				"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", // warnings and worse
				"-Djava.io.tmpdir=" + s.dir,
				"-cp", strings.Join(classes, string(os.PathListSeparator)),
				binaries.ZooKeeperMain, zooKeeperConfig(s),
			})
		},
		before: func(s *server) error {
			return os.WriteFile(zooKeeperConfig(s), []byte(zooKeeperSettings(m, zooKeeperData(s), "127.0.0.1", s.port)), 0o644)
		},
		ready: func(ctx context.Context, s *server) error { return zooKeeperReady(ctx, s.address(), zooKeeperData(s)) },
		quit:  syscall.SIGKILL, // it heeds SIGTERM in no other way
	}, nil
}

// zooKeeperJava make for a small virtual machine that is up soon.
func zooKeeperJava(m manner) []string {
	if m == durable {
		return []string{"-Xmx512m", "-XX:+UseSerialGC"}
	}
	return []string{
		"-Xmx128m",
		"-XX:+UseSerialGC",
		"-XX:TieredStopAtLevel=1",
		"-Dzookeeper.preAllocSize=1024", // kB of a log's file, not 64 MB
	}
}

func zooKeeperConfig(s *server) string { return filepath.Join(s.dir, "zoo.cfg") }

func zooKeeperData(s *server) string { return filepath.Join(s.dir, "data") }

// ZooKeeperTick is the tickTime of a server of [StartDurable].
const ZooKeeperTick = 2 * time.Second

// zooKeeperSettings let sessions be short, so that tests can see them end.
func zooKeeperSettings(m manner, dir, address string, port int) string {
	basics := fmt.Sprintf(`dataDir=%s
clientPort=%d
clientPortAddress=%s
# Connections from one address: every client here has the same one.
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=conf,mntr,ruok,srvr
`, dir, port, address)
	if m == durable {
		return basics + fmt.Sprintf("tickTime=%d\nminSessionTimeout=1000\n", ZooKeeperTick.Milliseconds())
	}
	return basics + `tickTime=200
minSessionTimeout=400
maxSessionTimeout=60000
forceSync=no
`
}

// zooKeeperReady compares the data folder, which no other server has; dir is
// empty where any will do. A server that does not serve yet does not tell it.
func zooKeeperReady(ctx context.Context, address, dir string) error {
	// A word that comes while it starts is sometimes lost.
	ctx, cancel := context.WithTimeout(ctx, time.Second/2)
	defer cancel()
	conf, err := zooKeeperAsk(ctx, address, "conf")
	if err != nil {
		return err
	}
	for line := range strings.Lines(conf) {
		of, ok := strings.CutPrefix(strings.TrimSpace(line), "dataDir=")
		switch {
		case !ok:
		case dir == "" || of == filepath.Join(dir, "version-2"):
			return nil
		default:
			return errors.New("another ZooKeeper answers on its port")
		}
	}
	return fmt.Errorf("it says %q", strings.TrimSpace(conf))
}

// zooKeeperAsk sends one of its four-letter words.
func zooKeeperAsk(ctx context.Context, address, word string) (string, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
