package raw

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// A zooKeeperRecords has a znode for each record. Its first line is the
// adapter's affair, and a fault that edits a record leaves it as it is.
type zooKeeperRecords struct {
	JSON
	conn   *zk.Conn
	prefix string
}

// session is short because the library waits for more than six times as long for
// a server that takes a connection and does not answer, as one that just starts.
const session = 3 * time.Second

func openZooKeeper(ctx context.Context, u *url.URL) (Records, func() error, error) {
	conn, events, err := zk.Connect(strings.Split(u.Host, ","), session, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return nil, nil, err
	}
	r := zooKeeperRecords{conn: conn, prefix: "/elector/"}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return r, func() error { conn.Close(); return nil }, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, nil, context.Cause(ctx)
		}
	}
}

// silent keeps the library from writing to standard error.
type silent struct{}

func (silent) Printf(string, ...any) {}

// within waits for the library, which knows no contexts.
func within(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r zooKeeperRecords) Get(ctx context.Context, election string) ([]byte, error) {
	contents := make(chan []byte, 1)
	err := within(ctx, func() error {
		data, _, err := r.conn.Get(r.prefix + election)
		_, content := firstLine(data)
		contents <- content
		return err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return append([]byte{}, <-contents...), nil
}

func firstLine(data []byte) (line, rest []byte) {
	end := bytes.IndexByte(data, '\n') + 1
	return data[:end:end], data[end:]
}

func (r zooKeeperRecords) Put(ctx context.Context, election string, content []byte) error {
	for {
		err := within(ctx, func() error {
			path := r.prefix + election
			old, stat, err := r.conn.Get(path)
			if err == nil {
				line, _ := firstLine(old) // an acquisition meanwhile changes it
				_, err = r.conn.Set(path, append(line, content...), stat.Version)
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return err
			}
			guard, acl := rand.Text(), zk.WorldACL(zk.PermAll)
			_, err = r.conn.Multi(
				&zk.CreateRequest{Path: path, Data: append([]byte("guard "+guard+"\n"), content...), Acl: acl},
				&zk.CreateRequest{Path: path + "/guard-" + guard, Acl: acl})
			return err
		})
		if !errors.Is(err, zk.ErrBadVersion) {
			return err
		}
	}
}

func (r zooKeeperRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	changed := errors.New("it has changed")
	err := within(ctx, func() error {
		path := r.prefix + election
		data, stat, err := r.conn.Get(path)
		if err != nil {
			return err
		}
		line, now := firstLine(data)
		if !bytes.Equal(now, old) {
			return changed
		}
		_, err = r.conn.Set(path, append(line, content...), stat.Version)
		return err
	})
	if errors.Is(err, changed) || errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		return false, nil
	}
	return err == nil, err
}

// Delete removes a record and what is below it at once. A holder may come or go
// meanwhile; then nothing was removed.
func (r zooKeeperRecords) Delete(ctx context.Context, election string) error {
	for {
		err := within(ctx, func() error {
			path := r.prefix + election
			children, _, err := r.conn.Children(path)
			if err != nil {
				return err
			}
			var ops []any
			for _, child := range children {
				ops = append(ops, &zk.DeleteRequest{Path: path + "/" + child, Version: -1})
			}
			_, err = r.conn.Multi(append(ops, &zk.DeleteRequest{Path: path, Version: -1})...)
			if errors.Is(err, zk.ErrNotEmpty) || len(ops) > 0 && errors.Is(err, zk.ErrNoNode) {
				return errAgain
			}
			return err
		})
		if errors.Is(err, zk.ErrNoNode) {
			return nil
		}
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

var errAgain = errors.New("the children have changed")
