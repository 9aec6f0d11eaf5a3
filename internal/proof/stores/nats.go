package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// natsBucket is the bucket of the tests.
const natsBucket = "elections"

// startNATS starts one server, which has the bucket of elections.
func startNATS(ctx context.Context) (*Store, error) {
	s, err := startNATSWith(ctx, "")
	if err != nil {
		return nil, err
	}
	err = natsAsk(ctx, s.Address, func(nc *nats.Conn) error { return natsMake(ctx, nc, 1) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the bucket: %w", err), s.Stop())
	}
	return s, nil
}

// natsMake makes the bucket, if it is missing, as the adapter does.
func natsMake(ctx context.Context, nc *nats.Conn, replicas int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "KV_" + natsBucket, Description: "records of elections", Subjects: []string{"$KV." + natsBucket + ".>"},
		Discard: jetstream.DiscardNew, Replicas: replicas, MaxMsgsPerSubject: 1, AllowRollup: true, DenyDelete: true,
	})
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = nil
	}
	return err
}

// startNATSWith starts one server with more settings. Its readiness is asked with the
// options.
func startNATSWith(ctx context.Context, settings string, options ...nats.Option) (*Store, error) {
	program, err := binaries.NATS()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	s, err := newServer(ctx, natsRecipe(program, (*server).dirName, func(*server) string { return settings }, options...))
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    NATS,
		How:     "local process nats-server " + binaries.NATSVersion + " (built from its module)",
		URL:     "nats://" + s.address() + "/" + natsBucket,
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}, nil
}

// natsRecipe says how a server is run. It syncs each write to the disk.
func natsRecipe(program string, name, settings func(*server) string, options ...nats.Option) recipe {
	return recipe{
		name:      "nats-server " + binaries.NATSVersion,
		program:   program,
		before:    func(s *server) error { return natsConfigure(s, name(s), settings(s)) },
		arguments: func(s *server) []string { return []string{"-c", natsConfig(s)} },
		ready: func(ctx context.Context, s *server) error {
			return natsReady(ctx, s.address(), name(s), options...)
		},
		quit: syscall.SIGKILL,
	}
}

func natsConfigure(s *server, name, settings string) error {
	return os.WriteFile(natsConfig(s), fmt.Appendf(nil, `
server_name: %q
listen: %q
max_payload: 4MB
jetstream { store_dir: %q, sync_interval: always, max_file_store: 1GB }
%s
`, name, s.address(), filepath.Join(s.dir, "data"), settings), 0o600)
}

func natsConfig(s *server) string { return filepath.Join(s.dir, "nats.conf") }

// natsReady asks whether JetStream answers, and whether it is this very server's.
func natsReady(ctx context.Context, address, name string, options ...nats.Option) error {
	return natsAsk(ctx, address, func(nc *nats.Conn) error {
		if nc.ConnectedServerName() != name {
			return errors.New("another NATS answers on its port")
		}
		m, err := nc.RequestWithContext(ctx, "$JS.API.INFO", nil)
		if err == nil && strings.Contains(string(m.Data), `"error"`) {
			err = fmt.Errorf("it answers %.200s", m.Data)
		}
		return err
	}, options...)
}

// natsAsk connects, once.
func natsAsk(ctx context.Context, address string, ask func(*nats.Conn) error, options ...nats.Option) error {
	nc, err := NATSConnect(ctx, address, options...)
	if err != nil {
		return err
	}
	defer nc.Close()
	return ask(nc)
}

// NATSConnect makes a connection that is not made again when it is lost.
func NATSConnect(ctx context.Context, address string, options ...nats.Option) (*nats.Conn, error) {
	timeout := 5 * time.Second
	if until, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(until)), time.Millisecond)
	}
	return nats.Connect("nats://"+address, append([]nats.Option{nats.Timeout(timeout), nats.NoReconnect(), nats.IgnoreAuthErrorAbort()}, options...)...)
}

// NATSWithUsers starts a NATS, whatever address the environment has, which wants a
// password. Admin may do everything, the bucket too, which is missing; User has the
// permissions alone, which are lines of the server's configuration.
func NATSWithUsers(ctx context.Context, permissions string) (*Store, error) {
	admin, user := Login{"admin", rand.Text()}, Login{"tester", rand.Text()}
	s, err := startNATSWith(ctx, natsUsers(admin, user, permissions), nats.UserInfo(admin.User, admin.Password))
	if err != nil {
		return nil, err
	}
	s.Admin, s.User, s.PasswordURL = admin, user, s.URL
	return s, nil
}

// NATSPermit gives the store's User its present password and other permissions, and waits
// until the server has read them. A server that starts again has them too.
func NATSPermit(ctx context.Context, s *Store, permissions string) error {
	runs := s.server.(*server)
	mark := Login{"mark", rand.Text()}
	settings := natsUsers(s.Admin, s.User, permissions, mark)
	runs.before = func(s *server) error { return natsConfigure(s, s.dirName(), settings) }
	if err := runs.before(runs); err != nil {
		return err
	}
	if err := syscall.Kill(runs.pid, syscall.SIGHUP); err != nil {
		return err
	}
	for {
		nc, err := NATSConnect(ctx, s.Address, nats.UserInfo(mark.User, mark.Password))
		if err == nil {
			nc.Close()
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the server does not read its settings again: %w", err)
		}
	}
}

// natsUsers are settings with two users, and with others who may do nothing.
func natsUsers(admin, user Login, permissions string, others ...Login) string {
	all := fmt.Sprintf(`
		{ user: %q, password: %q }
		{ user: %q, password: %q, permissions: { %s } }`, admin.User, admin.Password, user.User, user.Password, permissions)
	for _, l := range others {
		all += fmt.Sprintf(`
		{ user: %q, password: %q, permissions: { publish: { deny: ">" }, subscribe: { deny: ">" } } }`, l.User, l.Password)
	}
	return "\nauthorization {\n\tusers: [" + all + "\n\t]\n}"
}

// NATSRights are the permissions of a candidate, as docs/stores/nats.md has them.
const NATSRights = `
	publish: [
		"$KV.elections.elector.>"
		"$JS.API.STREAM.INFO.KV_elections"
		"$JS.API.STREAM.MSG.GET.KV_elections"
		"$JS.API.CONSUMER.CREATE.KV_elections.*.$KV.elections.elector.>"
	]
	subscribe: [ "_INBOX.>" ]
`

// NATSReaderRights are the permissions of a process that only reads.
const NATSReaderRights = `
	publish: [
		"$JS.API.STREAM.INFO.KV_elections"
		"$JS.API.STREAM.MSG.GET.KV_elections"
		"$JS.API.CONSUMER.CREATE.KV_elections.*.$KV.elections.elector.>"
	]
	subscribe: [ "_INBOX.>" ]
`
