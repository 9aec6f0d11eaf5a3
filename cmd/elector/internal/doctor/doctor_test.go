package doctor

import (
	"strings"
	"testing"
)

// A login that crosses the network without TLS is found, and no other.
func TestTransport(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	for address, fix := range map[string]string{
		"etcd://app:secret@db.example:2379":                          "etcds://",
		"etcd://app:secret@127.0.0.1:2379,db.example:2379":           "etcds://",
		"etcd://app:secret@127.0.0.1:2379,127.0.0.1:2380":            "",
		"etcd://app:secret@[::1]:2379":                               "",
		"etcd://db.example:2379":                                     "",
		"etcds://app:secret@db.example:2379":                         "",
		"zookeeper://app:secret@db.example:2181":                     "zookeepers://",
		"zookeepers://app:secret@db.example:2181":                    "",
		"postgres://app:secret@db.example/app":                       "sslmode=verify-full",
		"postgresql://app:secret@db.example/app?sslmode=require":     "sslmode=verify-full",
		"postgres://app:secret@db.example/app?sslmode=verify-full":   "",
		"postgres://app:secret@localhost/app":                        "",
		"postgres://app:secret@/app?host=/var/run/postgresql":        "",
		"postgres://app:secret@/app?host=db.example&sslmode=disable": "sslmode=verify-full",
	} {
		found := ""
		d := &doctor{Options: Options{URL: address}, report: func(l Line) { found += l.Fix }}
		d.transport()
		if (found == "") != (fix == "") || !strings.Contains(found, fix) || strings.Contains(found, "secret") {
			t.Errorf("%s: %q, want %q", address, found, fix)
		}
	}
}
