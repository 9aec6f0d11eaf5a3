package nats

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

// An election has two keys: one for the writes that begin or end a term, and one for the
// renewals of the term. The later of the two is its record. So the sequence of the first
// stays as it is during a term, which is what a guard compares. Both lie below a random
// token, the life, which the write that creates the record chooses: in a bucket that was
// deleted and made anew sequences come back, but not that token. After a record was deleted
// the next one has its life: a guard compares the keys of its own life alone.
const (
	leafTerm    = ".term"
	leafRenewal = ".renewal"
)

// headerTerm is the header of a renewal with the sequence of its term's first write.
const headerTerm = "Elector-Term"

func termHeader(seq uint64) natsgo.Header {
	return natsgo.Header{headerTerm: {strconv.FormatUint(seq, 10)}}
}

// A state is what a version has.
type state struct {
	life      string
	seq, term uint64 // of the record, and of the first write of its term; 0 if that is not known
}

func (s state) version() backends.Version {
	return backends.Version(fmt.Sprintf("%s.%d.%d", s.life, s.seq, s.term))
}

var plainLife = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// parseState reads a version. It reports false for one of another store.
func parseState(v backends.Version) (s state, ok bool) {
	parts := strings.Split(string(v), ".")
	if len(parts) != 3 || !plainLife.MatchString(parts[0]) {
		return state{}, false
	}
	seq, err := strconv.ParseUint(parts[1], 10, 64)
	term, e := strconv.ParseUint(parts[2], 10, 64)
	return state{parts[0], seq, term}, err == nil && e == nil && seq > 0
}

var (
	plainBucket = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,200}$`)
	plainPrefix = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,100}(\.[a-zA-Z0-9_-]{1,100}){0,9}$`)
)

const (
	bucketRule = "a bucket's name has ASCII letters, digits, '-' and '_'"
	prefixRule = "the prefix has ASCII letters, digits, '-' and '_', in parts that a '.' divides"
)

// checkPlace returns an error for a bucket or a prefix that cannot be used.
func checkPlace(bucket, prefix string) error {
	switch {
	case !plainBucket.MatchString(bucket):
		return errors.New(bucketRule + ", as in nats://host:4222/elections")
	case !plainPrefix.MatchString(prefix):
		return errors.New(prefixRule)
	}
	return nil
}

func (b *Backend) stream() string { return "KV_" + b.bucket }

// keys is what the subjects of the bucket begin with.
func (b *Backend) keys() string { return "$KV." + b.bucket + "." }

// subject is what the subjects of an election begin with. A dot would divide its name
// into two tokens; no name has the '=' that stands for it.
func (b *Backend) subject(name string) string {
	return b.keys() + b.prefix + "." + strings.ReplaceAll(name, ".", "=")
}

// name returns the election of a subject, and its last two tokens. It reports false
// if no election has that subject.
func (b *Backend) name(subject string) (name, life, leaf string, ok bool) {
	rest, ok := strings.CutPrefix(subject, b.keys()+b.prefix+".")
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 {
		return "", "", "", false
	}
	return strings.ReplaceAll(parts[0], "=", "."), parts[1], parts[2], true
}

// place returns the life and the leaf of the key of an election's message. It returns an
// error for a key that is not one of the election's two.
func (b *Backend) place(name string, m message) (life, leaf string, err error) {
	of, life, leaf, ok := b.name(m.Subject)
	if !ok || of != name || !plainLife.MatchString(life) || "."+leaf != leafTerm && "."+leaf != leafRenewal {
		return "", "", backends.Foreign("its key %.140q is not one of this package", m.Subject)
	}
	return life, leaf, nil
}

// record reads the latest message of an election. Only a marker on a key of the election
// means that there is no record: a marker on any other key, as a nested prefix makes, may
// be later than the record of a leader.
func (b *Backend) record(name string, m message) (backends.Record, error) {
	if m.Seq == 0 {
		return backends.Record{}, nil
	}
	life, leaf, err := b.place(name, m)
	if err != nil || m.marker() {
		return backends.Record{}, err
	}
	r, err := backends.Decode(name, m.Data)
	if err != nil {
		return backends.Record{}, err
	}
	s := state{life, m.Seq, m.Seq}
	if "."+leaf == leafRenewal {
		s.term, _ = strconv.ParseUint(m.header.Get(headerTerm), 10, 64)
	}
	r.Version = s.version()
	return r, nil
}
