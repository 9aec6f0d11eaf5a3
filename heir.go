package elector

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// An heir is the candidate that should lead next: the one that the leader or a
// request to resign named, or the one that announced the highest priority. The
// extension t_heir holds it. If the record names none, the heir is the candidate with
// the place in line: see line.go.
//
// It is a courtesy and decides only when a candidate tries: after a release the
// heir tries at once, and the others let it have a head start. Whether a candidate
// may lead is decided in view.go, by claimable alone. In a record with a holder an
// heir means nothing, whether the holder lives or has crashed.
type heir struct {
	id       string
	priority int
	nonce    string // random, so that no state of the record comes back
}

// heirName is the extension with the heir.
const heirName = "t_heir"

// named is the priority of an heir that was named: above all that candidates have.
const named = maxPriority + 1

// maxPriority is the highest of Options.Priority.
const maxPriority = 7

// maxHeir bounds the ID of an heir, in bytes.
const maxHeir = 256

// String returns the value of the extension.
func (h heir) String() string { return join(strconv.Itoa(h.priority), h.nonce, h.id) }

// heirOf returns the heir that a record names. The ID is empty if there is none.
func heirOf(r backends.Record) heir {
	value, _ := r.Extensions.Get(heirName)
	f := split(value, 3)
	priority, err := strconv.Atoi(f[0])
	if err != nil || priority < 0 || priority > named || checkHeir(f[2]) != nil {
		return heir{}
	}
	return heir{f[2], priority, f[1]}
}

// checkHeir returns ErrInvalid unless id can name an heir.
func checkHeir(id string) error {
	switch {
	case id == "":
		return fmt.Errorf("%w: the ID of the candidate that should lead next is empty", ErrInvalid)
	case len(id) > maxHeir:
		return fmt.Errorf("%w: the ID %.40q… has %d bytes; a candidate that should lead next may have %d", ErrInvalid, id, len(id), maxHeir)
	case !backends.ValidText(id):
		return fmt.Errorf("%w: the ID %.80q is not UTF-8, or has a NUL byte", ErrInvalid, id)
	}
	return nil
}

// join returns texts as one, which needs no escapes in JSON: split takes it apart.
func join(texts ...string) string {
	escaped := make([]string, len(texts))
	for i, text := range texts {
		escaped[i] = escape(text)
	}
	return strings.Join(escaped, " ")
}

// escape writes as %XX what JSON escapes, what separates texts, and "%".
func escape(text string) string {
	var b strings.Builder
	for _, r := range text {
		s := string(r)
		if r > ' ' && !strings.ContainsRune("\"\\<>&;%\x7f\u2028\u2029", r) {
			b.WriteString(s)
			continue
		}
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// split returns the n texts that join was given, and empty ones for anything
// else. Further texts, of a newer version, are ignored.
func split(joined string, n int) []string {
	texts := make([]string, n)
	escaped := strings.Split(joined, " ")
	if len(escaped) < n {
		return texts
	}
	for i := range texts {
		text, err := url.PathUnescape(escaped[i])
		if err != nil {
			return make([]string, n)
		}
		texts[i] = text
	}
	return texts
}

// longestHeadStart bounds what a dead heir costs.
const longestHeadStart = 30 * time.Second

// headStart is how long the others wait for an heir, from when they saw the
// vacancy: where the store pushes it, until the heir's write should have been seen;
// elsewhere two intervals, so that the heir has read the vacancy.
func (e *Elector) headStart(vacancy backends.Record) time.Duration {
	if !e.listens {
		return min(2*vacancy.RenewEvery, vacancy.TTL, longestHeadStart)
	}
	e.timing.mutex.Lock()
	defer e.timing.mutex.Unlock()
	return min(max(5*e.timing.roundTrip, 50*time.Millisecond), 500*time.Millisecond)
}

// turn returns the monotonic time from which this candidate tries to lead, and the
// other candidate that it lets try before. One that comes after the release lets
// none: the vacancy may be old, and its heir dead. The caller holds the mutex.
func (v *view) turn(headStart func(backends.Record) time.Duration) (from time.Duration, first string) {
	if v.aside != "" {
		from = v.asideUntil
	}
	if h := v.successor(); v.handed && h != "" && h != v.o.ID {
		if since := v.since + headStart(v.record); since > from {
			return since, h
		}
	}
	return from, ""
}

// successor returns the ID of the heir, if the record last seen is a vacancy: the one
// that it names, or otherwise the candidate with the place in line. The caller holds
// the mutex.
func (v *view) successor() string {
	if !v.record.Exists() || !v.record.Vacant() {
		return ""
	}
	if id := heirOf(v.record).id; id != "" {
		return id
	}
	return inPlace(v.place, v.record)
}

// inheritance returns the vacancy last seen if this candidate is its heir, who then
// need not read it: its swap compares.
func (v *view) inheritance() (backends.Record, bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return v.record, v.successor() == v.o.ID
}

// yields returns why this candidate does not try now, although it may lead; nil if
// it tries. wait is how long another candidate has a head start.
func (v *view) yields(r backends.Record, headStart func(backends.Record) time.Duration) (wait time.Duration, f *failure) {
	v.mutex.Lock()
	from, first := v.turn(headStart)
	left := from - v.clock.Now().Mono
	v.mutex.Unlock()
	if left <= 0 {
		return 0, nil
	}
	err := &HeldError{Leader: v.leader(r)}
	if first == "" {
		err.Reason = "this process was requested to resign and stands back until another candidate leads, for at most " + left.String()
		return 0, &failure{holding, err}
	}
	err.Reason = fmt.Sprintf("it is vacant, and %q should lead next; other candidates wait for it, this one for %v", first, left)
	return left, &failure{holding, err}
}

// standAside makes this candidate wait after a request to resign, until another
// acquisition is seen, for at most TTL*(1+ClockDrift). It does nothing if there is
// a successor already.
func (v *view) standAside(nonce string) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.record.Attempt.Nonce == nonce {
		v.aside, v.asideUntil = nonce, v.clock.Now().Mono+v.o.challenge(v.o.TTL)
	}
}
