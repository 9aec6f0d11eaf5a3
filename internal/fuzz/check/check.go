// Package check has what the fuzz targets of several packages share: the seeds,
// and the properties that hold whatever the fuzzer makes of them.
package check

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/elector-go/elector/backends"
)

// The fuzzer listens to signals, and the goroutine of os/signal that delivers
// them never ends. Started here, before any test runs, it is none that package
// leak finds left over.
func init() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	signal.Stop(c)
}

// Election is the election that the seeds are records of.
const Election = "invoice-sender"

// Decoded checks what a decoder made of something that anybody may have put in
// the place of the named election's record. It must be a record within the
// bounds, which says the same when it is written again, or ErrForeignRecord.
// The bounds are written out here once more, so that a mistake in Validate
// shows. It reports whether there is a record.
func Decoded(t testing.TB, name string, r backends.Record, err error) bool {
	t.Helper()
	if err != nil {
		if !errors.Is(err, backends.ErrForeignRecord) {
			t.Fatalf("what is no record must be ErrForeignRecord, not %v", err)
		}
		if len(err.Error()) > 2000 {
			t.Fatalf("an error of %d bytes, too long to read", len(err.Error()))
		}
		return false
	}
	text := func(s string, most int) bool {
		return len(s) <= most && utf8.ValidString(s) && !strings.Contains(s, "\x00")
	}
	switch {
	case r.TTL <= 0 || r.TTL > 24*time.Hour:
		t.Fatalf("a TTL of %v was taken", r.TTL)
	case r.RenewEvery <= 0 || r.RenewEvery >= r.TTL:
		t.Fatalf("a renewal interval of %v in a TTL of %v was taken", r.RenewEvery, r.TTL)
	case r.Token < 1 || r.Token >= 1<<53:
		t.Fatalf("token %d was taken", r.Token)
	case !text(r.Holder, 4096) || !text(r.Value, 4096):
		t.Fatalf("a holder of %d bytes and a value of %d were taken: %.80q, %.80q", len(r.Holder), len(r.Value), r.Holder, r.Value)
	case r.Attempt.Nonce == "" || !text(r.Attempt.Nonce, 64) || strings.Contains(r.Attempt.Nonce, ".") || r.Attempt.Sequence == 0:
		t.Fatalf("attempt %q was taken", r.Attempt)
	}
	extensions(t, string(r.Extensions))
	written := r
	written.Version = ""
	if again, err := backends.Decode(name, backends.Encode(name, r)); err != nil || again != written {
		t.Fatalf("%+v is written and read again as %+v and error %v", written, again, err)
	}
	return true
}

// extensions checks those of a record.
func extensions(t testing.TB, s string) {
	t.Helper()
	if s == "" {
		return
	}
	var fields map[string]string
	if err := json.Unmarshal([]byte(s), &fields); err != nil || len(fields) == 0 {
		t.Fatalf("the extensions %.80q were taken, with %d fields: %v", s, len(fields), err)
	}
	size := 0
	for name, value := range fields {
		size += len(name) + len(value)
		if len(name) < 3 || len(name) > 32 || !strings.Contains("ckt", name[:1]) || name[1] != '_' || strings.Trim(name[2:], "abcdefghijklmnopqrstuvwxyz_") != "" || strings.Contains(value, "\x00") {
			t.Fatalf("the extension %q with the value %.80q was taken", name, value)
		}
	}
	if again, err := json.Marshal(fields); err != nil || string(again) != s || size > 2048 {
		t.Fatalf("the extensions %.80q, of %d bytes, were taken: they are written %.80q, %v", s, size, again, err)
	}
}

// Loaded is Decoded for a backend's Load of a record that is there: it must
// have a version too.
func Loaded(t testing.TB, name string, r backends.Record, err error) bool {
	t.Helper()
	if !Decoded(t, name, r, err) {
		return false
	}
	if !r.Exists() {
		t.Fatalf("the record has no version: %+v", r)
	}
	return true
}

// Bounded runs f, which reads size bytes that anybody may have written, and
// fails if that allocates much more memory than they have. What the test binary
// itself allocates counts too, so the least of three runs is taken.
func Bounded(t testing.TB, size int, f func()) {
	t.Helper()
	most, least := uint64(64*size+256<<10), uint64(1<<64-1)
	for range 3 {
		before := allocated()
		f()
		if least = min(least, allocated()-before); least <= most {
			return
		}
	}
	t.Fatalf("reading %d bytes allocates %d", size, least)
}

// allocated is cheap, and exact for what is large enough to matter.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
