package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

func startEtcd(ctx context.Context, m manner) (*Store, error) {
	return startEtcdAs(ctx, m, &Login{})
}

// startEtcdAs starts etcd. Its readiness is asked as admin, which may change
// while it runs.
func startEtcdAs(ctx context.Context, m manner, admin *Login) (*Store, error) {
	program, err := binaries.Etcd()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	s, err := newServer(ctx, recipe{
		name:    "etcd " + binaries.EtcdVersion,
		program: program,
		arguments: func(s *server) []string {
			url := "http://" + s.address()
			return etcdArguments(m, etcdName(s), filepath.Join(s.dir, "data"), url, url)
		},
		ready: func(ctx context.Context, s *server) error { return etcdReady(ctx, s.address(), etcdName(s), *admin) },
		quit:  syscall.SIGKILL, // its data is removed anyway, and it waits for clients otherwise
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    Etcd,
		How:     "local process etcd " + binaries.EtcdVersion + " (built from its module)",
		URL:     "etcd://" + s.address(),
		Address: s.address(),
		PID:     s.pid,
		Admin:   *admin,
		server:  s,
	}, nil
}

// etcdName is the member's name, which no other server has.
func etcdName(s *server) string { return filepath.Base(s.dir) }

// etcdArguments are for a single member that keeps its data in dir, listens at
// the one URL and is reached at the other.
func etcdArguments(m manner, name, dir, listen, client string) []string {
	// No other member ever talks to the only member as a peer: any port will do.
	peer := "http://127.0.0.1:0"
	arguments := append(etcdBasics(m, name, dir, listen, client),
		"--listen-peer-urls="+peer,
		"--initial-advertise-peer-urls="+peer,
		"--initial-cluster="+name+"="+peer,
		"--initial-cluster-token="+name)
	if m == durable {
		return arguments
	}
	return append(arguments, "--heartbeat-interval=20", "--election-timeout=200")
}

// etcdBasics are for every member, whatever others there are.
func etcdBasics(m manner, name, dir, listen, client string) []string {
	arguments := []string{
		"--name=" + name,
		"--data-dir=" + dir,
		"--listen-client-urls=" + listen,
		"--advertise-client-urls=" + client,
		"--log-level=error",
	}
	if m == durable {
		return append(arguments, "--auto-compaction-mode=periodic", "--auto-compaction-retention=5m") // as package backends/etcd advises
	}
	return append(arguments,
		"--unsafe-no-fsync", // what a killed process has written stays; no test cuts the power
		"--snapshot-count=1000",
		"--auto-compaction-mode=revision",
		"--auto-compaction-retention=1000",
		"--bcrypt-cost=4", // passwords of tests
	)
}

// etcdReady reads the list of members, which is linearizable: there is a leader
// then.
func etcdReady(ctx context.Context, address, name string, admin Login) error {
	// The client waits a second before it tries a refused connection again.
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	conn.Close()
	client, err := etcdClient(ctx, address, admin)
	if err != nil {
		return err
	}
	defer client.Close()
	list, err := client.MemberList(ctx)
	if err != nil {
		return err
	}
	for _, m := range list.Members {
		if m.ID == list.Header.MemberId && m.Name == name {
			return nil
		}
	}
	return errors.New("another etcd answers on its port")
}

// etcdClient connects in plain text. The password may be empty with the user.
func etcdClient(ctx context.Context, address string, as Login) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   []string{address},
		DialTimeout: 5 * time.Second,
		Username:    as.User,
		Password:    as.Password,
		Logger:      zap.NewNop(),
	})
}

// EtcdWithAuth starts an etcd, whatever address the environment has,
// which wants a password. Admin may do everything; User may read and write the keys that
// begin with prefix and no others. PasswordURL and URL are the same.
func EtcdWithAuth(ctx context.Context, prefix string) (*Store, error) {
	return etcdWithAuth(ctx, quick, prefix)
}

func etcdWithAuth(ctx context.Context, m manner, prefix string) (*Store, error) {
	admin := &Login{}
	s, err := first(ctx, Etcd, []method{
		{byDocker, func(ctx context.Context, _ string) (*Store, error) { return dockerEtcd(ctx, m, admin) }},
		{byProcess, func(ctx context.Context, _ string) (*Store, error) { return startEtcdAs(ctx, m, admin) }},
	})
	if err != nil {
		return nil, err
	}
	// Only root may enable authentication.
	root, tester := Login{"root", rand.Text()}, Login{"tester", rand.Text()}
	if err := etcdEnableAuth(ctx, s.Address, root, tester, prefix); err != nil {
		return nil, errors.Join(fmt.Errorf("enabling authentication of %s: %w", s, err), s.Stop())
	}
	*admin = root
	s.Admin, s.User, s.PasswordURL = root, tester, s.URL
	return s, nil
}

func etcdEnableAuth(ctx context.Context, address string, root, tester Login, prefix string) error {
	client, err := etcdClient(ctx, address, Login{})
	if err != nil {
		return err
	}
	defer client.Close()
	for _, l := range []Login{root, tester} {
		if _, err := client.UserAdd(ctx, l.User, l.Password); err != nil {
			return err
		}
		if _, err := client.RoleAdd(ctx, l.User); err != nil {
			return err
		}
		if _, err := client.UserGrantRole(ctx, l.User, l.User); err != nil {
			return err
		}
	}
	readWrite := clientv3.PermissionType(clientv3.PermReadWrite)
	if _, err := client.RoleGrantPermission(ctx, tester.User, prefix, clientv3.GetPrefixRangeEnd(prefix), readWrite); err != nil {
		return err
	}
	_, err = client.AuthEnable(ctx)
	return err
}
