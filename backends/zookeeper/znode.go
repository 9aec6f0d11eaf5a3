package zookeeper

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/elector-go/elector/backends"
)

// A record's znode has a child named by the record's guard, a random id. A
// change compares the znode's dataVersion, which starts at 0 again when the
// znode is deleted and created anew, and the id, which is never used again:
// every change checks that this child exists. Each acquisition and each release
// replaces the guard, so that it also stands for the acquisition: see Guard. The
// znode's data begin with the id, so that one read returns both.
const guardWord = "guard "

func newGuard() string { return rand.Text() }

// content returns the data of a record's znode: a line with its guard, and JSON.
func content(guard, name string, r backends.Record) []byte {
	return append([]byte(guardWord+guard+"\n"), backends.Encode(name, r)...)
}

// guardOf returns the guard that data begin with, and the rest of them.
func guardOf(data []byte) (guard string, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(data, []byte(guardWord))
	line, rest, found := bytes.Cut(rest, []byte("\n"))
	if !ok || !found || len(line) == 0 || len(line) > 64 {
		return "", nil, false
	}
	for _, c := range line {
		if (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return "", nil, false // it becomes a part of a path
		}
	}
	return string(line), rest, true
}

func decode(name string, data []byte, stat *zk.Stat) (backends.Record, error) {
	guard, rest, ok := guardOf(data)
	if !ok {
		return backends.Record{}, backends.Foreign("it does not begin with a line of the form %q", guardWord+"ID")
	}
	r, err := backends.Decode(name, rest)
	if err != nil {
		return backends.Record{}, err
	}
	if stat.NumChildren == 0 {
		return backends.Record{}, errUnguarded
	}
	r.Version = version(guard, stat.Version)
	return r, nil
}

// version does not use the zxid, which means the same: the change that creates a
// znode does not return it, and the server compares dataVersion alone.
func version(guard string, dataVersion int32) backends.Version {
	return backends.Version(guard + "." + strconv.Itoa(int(dataVersion)))
}

func parseVersion(v backends.Version) (guard string, dataVersion int32, err error) {
	guard, digits, _ := strings.Cut(string(v), ".")
	n, err := strconv.ParseInt(digits, 10, 32)
	// -1 would mean any version to the server.
	if _, rest, ok := guardOf([]byte(guardWord + guard + "\n")); !ok || len(rest) > 0 || err != nil || n < 0 {
		return "", 0, fmt.Errorf("%w (and the version to replace is not from ZooKeeper)", backends.ErrConflict)
	}
	return guard, int32(n), nil
}

// SameWrite implements [backends.SameWriter]: the same data were set once, and nothing else
// in between. zkCli's set does that.
func (b *Backend) SameWrite(before, after backends.Version) bool {
	was, n, err := parseVersion(before)
	is, m, err2 := parseVersion(after)
	return err == nil && err2 == nil && was == is && m == n+1
}

// The paths of a record's znode and its children.
func (b *Backend) path(name string) string { return b.prefix + "/" + name }

func guardPath(path, guard string) string { return path + "/guard-" + guard }

func leaderPath(path string) string { return path + "/leader" }
