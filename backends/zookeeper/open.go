package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/zookeeper/internal/zkconn"
	"github.com/elector-go/elector/internal/storeurl"
	"github.com/elector-go/elector/internal/tlsfiles"
)

func init() {
	backends.Register("zookeeper", open)
	backends.Register("zookeepers", open)
}

const (
	// patience bounds opening when the caller set no deadline.
	patience = 10 * time.Second

	// defaultSession is above the 13.5 s for which a holder trusts a lease of
	// the default TTL: a shorter one would depose holders whose lease runs.
	defaultSession = 30 * time.Second
)

// settings are the meaning of a URL.
type settings struct {
	hosts          []string
	prefix         string
	user, password string
	timeout        time.Duration
	tls            zkconn.Secure // nil for none
	readOnly       bool
	readable       bool // anyone may read what is created
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	o, err := parse(u)
	if err != nil {
		return nil, err
	}
	server := *u
	server.Path = ""
	b := newBackend(backends.Redact(&server), o.prefix)
	b.session = o.timeout
	if o.user != "" {
		b.acl = zk.DigestACL(zk.PermAll, o.user, o.password)
		if o.readable {
			b.acl = append(b.acl, zk.WorldACL(zk.PermRead)...)
		}
	}
	b.base.SetReadOnly(o.readOnly)
	err = b.base.Open(ctx, patience, func(ctx context.Context) (err error) {
		if b.conn, err = zkconn.Dial(o.hosts, o.tls, o.timeout); err != nil {
			return err
		}
		return b.enter(ctx, o)
	})
	if err != nil {
		if b.conn != nil {
			b.Close()
		}
		return nil, err
	}
	return b, nil
}

// enter waits for a session, signs in and checks the prefix.
func (b *Backend) enter(ctx context.Context, o settings) error {
	if err := b.conn.Wait(ctx); err != nil {
		return err
	}
	if o.user != "" {
		if _, err := call(ctx, b, func() (struct{}, error) {
			return struct{}{}, b.conn.AddAuth("digest", []byte(o.user+":"+o.password))
		}); err != nil {
			return err
		}
	}
	stat, err := b.readPrefix(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		if o.readOnly {
			return fmt.Errorf("%w: there is no znode %s, so no election has ever used it; check the path in the URL", backends.ErrMisconfigured, b.prefix)
		}
		if err = b.createParents(ctx, b.prefix); err == nil {
			stat, err = b.readPrefix(ctx)
		}
	}
	switch {
	case err != nil:
		return err
	case stat.EphemeralOwner != 0 && stat.EphemeralOwner != math.MinInt64: // a container's
		return fmt.Errorf("%w: %s is ephemeral, or has a time to live; delete it, or name another path in the URL", backends.ErrMisconfigured, b.prefix)
	case stat.DataLength > 0:
		return fmt.Errorf("%w: %s holds data, so it is something else, perhaps an election; the path in the URL is the parent of the elections' znodes, without an election's name; if it is the right one, empty it: set %s \"\"", backends.ErrMisconfigured, b.prefix, b.prefix)
	}
	return nil
}

// readPrefix reads the prefix, which is denied to a user without access.
func (b *Backend) readPrefix(ctx context.Context) (*zk.Stat, error) {
	return call(ctx, b, func() (*zk.Stat, error) {
		_, stat, err := b.conn.Get(b.prefix)
		return stat, err
	})
}

// parse reads a URL. It touches no network, but reads the files of TLS.
func parse(u *url.URL) (settings, error) {
	if storeurl.Misread(u) {
		return settings{}, fmt.Errorf("%w: it is not of the form zookeeper://user:password@host:2181/prefix (not shown, it may hold a password); percent-encode special characters, @ # ? / say, in user and password", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (settings, error) {
		return settings{}, fmt.Errorf("%w %s: %w", backends.ErrURL, backends.Redact(u), fmt.Errorf(format, args...))
	}
	p := backends.NewParameters(u)
	o := settings{timeout: p.Duration("session_timeout", defaultSession)}
	o.readOnly, o.readable = p.Bool("readonly", false), p.Bool("readable", false)
	files := tlsfiles.From(p)
	if err := p.Done(); err != nil {
		return o, err
	}
	if o.timeout < time.Millisecond || o.timeout > math.MaxInt32*time.Millisecond {
		return refuse("session_timeout is not between 1 ms and 24 days")
	}

	if u.User != nil {
		o.user = u.User.Username()
		o.password, _ = u.User.Password()
		if o.user == "" || o.password == "" {
			return refuse("user and password go together")
		}
		if strings.Contains(o.user, ":") {
			return refuse("a user cannot have a colon")
		}
	}

	if u.Scheme == "zookeepers" {
		if err := files.Check(); err != nil {
			return refuse("%w", err)
		}
		o.tls = files.For
	} else if files != (tlsfiles.Files{}) {
		return refuse("ca, cert, key and server_name are for TLS; write zookeepers://")
	}
	var err error
	if o.hosts, err = storeurl.Hosts(u, "2181"); err != nil {
		return refuse("%w", err)
	}

	o.prefix = strings.TrimSuffix(u.Path, "/")
	if wrong := wrongPrefix(o.prefix); wrong != "" {
		return refuse("its path %s", wrong)
	}
	return o, nil
}

// wrongPrefix returns why no znode can have the path and be the parent of the records,
// "" if one can. The path has no slash at its end; the empty one stands for the default.
func wrongPrefix(prefix string) string {
	switch {
	case prefix == "":
		return ""
	case prefix == "/" || prefix[0] != '/' || prefix != path.Clean(prefix):
		return "is not that of a znode, as in /services/elector"
	case prefix == "/zookeeper" || strings.HasPrefix(prefix, "/zookeeper/"):
		return "/zookeeper is ZooKeeper's own"
	}
	return ""
}
