package etcd

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// A shelf answers each read with one value and remembers what was asked for.
type shelf struct {
	clientv3.KV
	value []byte
	keys  []string
}

func (s *shelf) Get(_ context.Context, key string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	s.keys = append(s.keys, key)
	return &clientv3.GetResponse{Header: &etcdserverpb.ResponseHeader{}, Kvs: []*mvccpb.KeyValue{{Key: []byte(key), Value: s.value}}}, nil
}

// Txn, If, Then, Else and Commit refuse every write.
func (s *shelf) Txn(context.Context) clientv3.Txn { return s }

func (s *shelf) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	for _, c := range comparisons {
		s.keys = append(s.keys, string(c.KeyBytes()))
	}
	return s
}

func (s *shelf) Then(operations ...clientv3.Op) clientv3.Txn {
	for _, o := range operations {
		s.keys = append(s.keys, string(o.KeyBytes()))
	}
	return s
}

func (s *shelf) Else(...clientv3.Op) clientv3.Txn { panic("not used") }

func (s *shelf) Commit() (*clientv3.TxnResponse, error) { return &clientv3.TxnResponse{}, nil }

func (s *shelf) backend() *Backend {
	b := newBackend("etcd://h/elector/", DefaultPrefix)
	b.client = &clientv3.Client{KV: s}
	return b
}

// FuzzContent: whatever value a key has, it is a record or foreign, and is read
// in bounded memory.
func FuzzContent(f *testing.F) {
	for _, content := range check.Contents() {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		b := (&shelf{value: content}).backend()
		var r backends.Record
		var err error
		check.Bounded(t, len(content), func() { r, err = b.Load(t.Context(), check.Election) })
		if check.Loaded(t, check.Election, r, err) && string(r.Version) != string(content) {
			t.Fatalf("the version %q is not the content %q", r.Version, content)
		}
	})
}

// FuzzNames: two names are two keys right below the prefix, and no key of one is
// between those of the other; an invalid name is never sent.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		var keys []string
		for _, name := range []string{a, b} {
			s := &shelf{}
			_, err := s.backend().Load(t.Context(), name)
			_, e := s.backend().Swap(t.Context(), name, backends.Record{}, check.Good())
			if !check.Usable(name) {
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) || len(s.keys) > 0 {
					t.Fatalf("%q: Load %v and Swap %v with keys %q, want ErrName and none", name, err, e, s.keys)
				}
				return
			}
			if len(s.keys) != 3 {
				t.Fatalf("%q: a read, a comparison and a write have the keys %q", name, s.keys)
			}
			for _, key := range s.keys {
				if key != s.keys[0] || !strings.HasPrefix(key, DefaultPrefix) || strings.Contains(key[len(DefaultPrefix):], "/") {
					t.Fatalf("%q has the keys %q", name, s.keys)
				}
			}
			keys = append(keys, s.keys[0])
		}
		if a != b {
			check.Distinct(t, keys...)
			if keys[0] <= keys[1] && keys[1] <= keys[0]+"+next" {
				t.Fatalf("a watch of %q and its place shows %q too", a, b)
			}
		}
	})
}

// FuzzURL: a URL names servers and a prefix or is refused, and its password
// reaches the client library only.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h", "h:1,i:2/a/b/", "[::1]:4/", "h,,i", ":2379", "", "/prefix", "h/%20x", "h/a%40b", "h//", "h?tls=true", "h?server_name=i", "h?ca=/no/such/file", "h?ca=a&ca=b", "h?cert=a&key=b", "h#f")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"etcd", "etcds"}, user, before, after, rest)
		if !ok {
			return
		}
		u, err := url.Parse(a.Text)
		if err != nil {
			return // backends.Open says nothing of it
		}
		o, err := parse(t.Context(), u)
		config, prefix := o.client, o.prefix
		a.Hides(t, err, prefix, config.Endpoints)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", a.Text, err)
			}
			return
		}
		a.Hides(t, backends.Redact(u)) // the name of the store from now on
		if o.login == nil {
			t.Fatalf("%q was taken without a user", a.Text)
		}
		if name, password, err := o.login(); err != nil {
			t.Fatal(err)
		} else {
			a.Means(t, name, password)
		}
		if !strings.HasSuffix(prefix, "/") || len(prefix) < 2 || len(config.Endpoints) == 0 || (config.TLS != nil) != (u.Scheme == "etcds") {
			t.Fatalf("%q: prefix %q, servers %q, TLS %v", a.Text, prefix, config.Endpoints, config.TLS != nil)
		}
		for _, endpoint := range config.Endpoints {
			_, host, _ := strings.Cut(endpoint, "://")
			if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
				t.Fatalf("%q: server %q: %v", a.Text, endpoint, err)
			}
		}
	})
}
