package zookeeper

import (
	"errors"
	"net"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// FuzzContent: whatever a znode holds, it is a record with a guard that is one
// part of a path, or foreign, and is read in bounded memory.
func FuzzContent(f *testing.F) {
	guard := "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, content := range check.Contents() {
		f.Add(append([]byte(guardWord+guard+"\n"), content...), int32(7), int32(2))
	}
	good := string(content(guard, check.Election, check.Good()))
	rest := strings.TrimPrefix(good, guardWord+guard+"\n")
	for _, s := range []string{"", "guard", "guard \n", "guard A", rest, "guard a\n" + rest, "guard A/B\n" + rest, "guard ../A\n" + rest, "\n" + good, "guard A\n" + good, "guard A\r\n" + rest, "guard \x00\n" + rest,
		"guard " + strings.Repeat("A", 65) + "\n" + rest, "GUARD A\n" + rest} {
		f.Add([]byte(s), int32(0), int32(1))
	}
	f.Add([]byte(good), int32(1<<31-1), int32(0))
	f.Fuzz(func(t *testing.T, data []byte, dataVersion, children int32) {
		if dataVersion < 0 {
			return // not before two thousand million changes of one znode
		}
		stat := &zk.Stat{Version: dataVersion, NumChildren: children}
		var r backends.Record
		var err error
		check.Bounded(t, len(data), func() { r, err = decode(check.Election, data, stat) })
		if errors.Is(err, errUnguarded) && children == 0 {
			return
		}
		if !check.Loaded(t, check.Election, r, err) {
			return
		}
		guard, n, err := parseVersion(r.Version)
		if err != nil || n != dataVersion || children == 0 {
			t.Fatalf("version %q is guard %q and %d of %d, %v", r.Version, guard, n, dataVersion, err)
		}
		if p := guardPath("/elector/a", guard); path.Clean(p) != p || path.Dir(p) != "/elector/a" || !strings.HasPrefix(string(data), guardWord+guard+"\n") {
			t.Fatalf("%q has the guard %q at %s", data, guard, p)
		}
		r.Version = ""
		if again, err := decode(check.Election, content(guard, check.Election, r), stat); err != nil || again.Version != version(guard, n) {
			t.Fatalf("%+v is written and read as %+v, %v", r, again, err)
		}
	})
}

// FuzzVersion: a version is a guard that is one part of a path and a number
// that is not -1, which means any to the server; or it conflicts.
func FuzzVersion(f *testing.F) {
	for _, v := range []string{"ABC.7", "x", "A", "A.", ".1", "A.-1", "A.+1", "A.01", "A.2147483647", "A.2147483648", "A.1.1", "a.1", "A/B.1", "../A.1", "A\n.1", strings.Repeat("A", 65) + ".1"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v string) {
		guard, n, err := parseVersion(backends.Version(v))
		if err != nil {
			if !errors.Is(err, backends.ErrConflict) {
				t.Fatalf("version %q: %v is not ErrConflict", v, err)
			}
			return
		}
		if n < 0 || guard == "" || len(guard) > 64 || strings.Trim(guard, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") != "" || !strings.HasPrefix(v, guard+".") {
			t.Fatalf("version %q is guard %q and %d", v, guard, n)
		}
		if again, m, err := parseVersion(version(guard, n)); err != nil || again != guard || m != n {
			t.Fatalf("version %q is guard %q and %d, and that is %q and %d, %v", v, guard, n, again, m, err)
		}
	})
}

// FuzzNames: two names are two znodes, neither above the other, nor is a child
// of one the record of another.
func FuzzNames(f *testing.F) {
	for _, names := range check.Names() {
		f.Add(names[0], names[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		store := newBackend("zookeeper://h", "/services/elector/")
		var all []string
		for _, name := range []string{a, b} {
			if !check.Usable(name) {
				_, err := store.Load(t.Context(), name) // with no connection to ask
				_, e := store.Swap(t.Context(), name, backends.Record{}, check.Good())
				if !errors.Is(err, backends.ErrName) || !errors.Is(e, backends.ErrName) {
					t.Fatalf("%q: Load %v and Swap %v, want ErrName", name, err, e)
				}
				return
			}
			p := store.path(name)
			if path.Clean(p) != p || path.Dir(p) != "/services/elector" || path.Base(p) != name {
				t.Fatalf("%q has the path %s", name, p)
			}
			for _, child := range []string{leaderPath(p), guardPath(p, newGuard())} {
				if path.Clean(child) != child || path.Dir(child) != p || strings.HasPrefix(path.Base(leaderPath(p)), path.Base(guardPath(p, ""))) {
					t.Fatalf("%q has the child %s", name, child)
				}
			}
			all = append(all, p)
		}
		if a != b {
			check.Distinct(t, all...)
		}
	})
}

// FuzzURL: a URL names servers and a path or is refused, and its password
// reaches the client library alone.
func FuzzURL(f *testing.F) {
	check.URLs(f, "h", "h:1,i:2/a/b/", "[::1]:4/", "h,,i", ":2181", "", "/prefix", "h/a%40b", "h//", "h/a/../b", "h/./a", "h/zookeeper", "h/zookeeper/quota", "h/zookeepers",
		"h?session_timeout=30s", "h?session_timeout=0s", "h?session_timeout=1000h", "h?session_timeout=30", "h?tls=true", "h?server_name=i", "h?ca=/no/such/file", "h#f")
	f.Fuzz(func(t *testing.T, form uint8, user, before, after, rest string) {
		a, ok := check.NewAddress(form, []string{"zookeeper", "zookeepers"}, user, before, after, rest)
		if !ok {
			return
		}
		u, err := url.Parse(a.Text)
		if err != nil {
			return // backends.Open says nothing of it
		}
		o, err := parse(u)
		a.Hides(t, err, o.prefix, o.hosts)
		if err != nil {
			if !errors.Is(err, backends.ErrURL) {
				t.Fatalf("%q: %v is not ErrURL", a.Text, err)
			}
			return
		}
		a.Hides(t, backends.Redact(u)) // the name of the store from now on
		a.Means(t, o.user, o.password)
		if strings.Contains(o.user, ":") { // the login is USER:PASSWORD in one word
			t.Fatalf("%q has the user %q", a.Text, o.user)
		}
		if len(o.hosts) == 0 || o.timeout < time.Millisecond || (o.tls != nil) != (u.Scheme == "zookeepers") || o.prefix != "" && (path.Clean(o.prefix) != o.prefix || o.prefix[0] != '/' || o.prefix == "/") {
			t.Fatalf("%q: %+v", a.Text, o)
		}
		for _, host := range o.hosts {
			if name, port, err := net.SplitHostPort(host); err != nil || name == "" || port == "" {
				t.Fatalf("%q: server %q: %v", a.Text, host, err)
			}
		}
	})
}
