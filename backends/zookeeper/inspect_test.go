package zookeeper

import (
	"strings"
	"testing"
	"time"
)

// A session that ends before the lease, or that stays with a dark server for too
// long, is found.
func TestInspectSession(t *testing.T) {
	for _, test := range []struct {
		session, ttl time.Duration
		fix         string // contained; empty for none
	}{
		{30 * time.Second, 15 * time.Second, ""},
		{30 * time.Second, 10 * time.Second, ""},
		{13 * time.Second, 15 * time.Second, "more than 13.5s"},
		{30 * time.Second, 5 * time.Second, "about 10s"},
		{10 * time.Second, 5 * time.Second, ""},
	} {
		b := newBackend("zookeeper://host", "")
		b.session = test.session
		f := b.inspectSession(test.ttl)
		if (test.fix == "") != (f.Fix == "") || !strings.Contains(f.Fix, test.fix) {
			t.Errorf("a session of %v with a TTL of %v: %q, want %q", test.session, test.ttl, f.Fix, test.fix)
		}
	}
}
