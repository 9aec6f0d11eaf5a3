//go:build unix

package cli

import (
	"bytes"
	"net"
	"strings"
	"syscall"
	"testing"

	_ "github.com/elector-go/elector/backends/postgres"
)

// What operators meet first tells them what to do, in their words.
func TestErrorsForOperators(t *testing.T) {
	hole, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer hole.Close()
	for _, c := range []struct {
		name, args string
		code       int
		says       string
		never      string
	}{
		{"the scheme is missing", "leader a --url 127.0.0.1:2379", 64, "write etcd://127.0.0.1:2379", "percent"},
		{"a host is no scheme", "leader a --url localhost:2379", 64, "write etcd://localhost:2379", "import"},
		{"http is no store", "leader a --url http://localhost:2379", 64, "write etcd://localhost:2379", "import"},
		{"an unknown store", "leader a --url riak://localhost", 64, "this program knows ", "import"},
		{"a store misspelt", "leader a --url etc://localhost", 64, "did you mean etcd://", "import"},
		{"no host", "leader a --url etcd://", 64, "unusable store URL etcd://: it names no host", "etcd::"},
		{"PostgreSQL that does not answer", "leader a --url postgres://u:s3cret@" + hole.Addr().String() + "/db", 69, "see whether the server runs and the network leads there", "s3cret"},
		{"a time without a unit", "run a --ttl 5 -- true", 64, "a time needs a unit: write 5s", "missing unit"},
		{"a name never used", "leader typo --url file://" + t.TempDir(), 3, "no election has ever used the name", ""},
		{"the leader's own name", "leader a/b --url file:///tmp", 64, "election name", "elector: elector"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := run(t, nil, strings.Fields(c.args)...)
			if r.code != c.code || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, c.says) || c.never != "" && strings.Contains(r.err, c.never) {
				t.Errorf("code %d, %q; want %d and %q, not %q", r.code, r.err, c.code, c.says, c.never)
			}
		})
	}
	if r := run(t, []string{"ELECTOR_TTL=5"}, "doctor", "--url", "memory://"); !strings.Contains(r.err, "ELECTOR_TTL: ") || !strings.Contains(r.err, "write 5s") {
		t.Errorf("a variable without a unit: %q", r.err)
	}
}

// A second signal, and a command that ignores the first, are told from a lease that ends.
func TestWhyItIsKilled(t *testing.T) {
	for says, grace := range map[string]string{"the command must end at once: SIGKILL": "1h", "the command has not ended within 50ms of SIGTERM: SIGKILL": "50ms"} {
		c := elect(t.TempDir(), `trap "echo told" TERM; echo up; while :; do sleep 0.01; done`, "--stop-grace", grace)
		var said bytes.Buffer
		c.Stderr = &said
		in := begun(t, c)
		signalTo(t, c, syscall.SIGTERM)
		if grace == "1h" {
			in.ReadString('\n')
			signalTo(t, c, syscall.SIGINT)
		}
		if code := exit(c); code != 137 || !strings.Contains(said.String(), says) || strings.Contains(said.String(), "time is up") {
			t.Errorf("code %d, %q; want %q", code, &said, says)
		}
	}
}

// A lost lease is told once.
func TestLossIsToldOnce(t *testing.T) {
	dir := t.TempDir()
	c := elect(dir, `trap "exit 0" TERM; echo up; while :; do sleep 0.01; done`, "--ttl", "3s", "--once")
	var said bytes.Buffer
	c.Stderr = &said
	begun(t, c)
	unlock := lock(t, dir, "a")
	code := exit(c)
	unlock()
	told := strings.Count(said.String(), "not renewed in time") + strings.Count(said.String(), "leads no more")
	if code != exitLost || told > 2 || strings.Contains(said.String(), "elector: elector") || strings.Contains(said.String(), "lead \"a\"") {
		t.Errorf("code %d, %q", code, &said)
	}
}
