package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

const api = "$JS.API."

// A message is one that the stream keeps. The zero message stands for none.
type message struct {
	Subject string
	Seq     uint64
	Hdrs    []byte
	Data    []byte

	header natsgo.Header // read from Hdrs
}

// marker reports whether it stands for a key that was deleted.
func (m message) marker() bool {
	operation := m.header.Get("KV-Operation")
	return m.Seq > 0 && (operation == "DEL" || operation == "PURGE" || m.header.Get("Nats-Marker-Reason") != "")
}

// absent reports whether there is no record.
func (m message) absent() bool { return m.Seq == 0 || m.marker() }

// An apiError is an answer that JetStream cannot do what was asked for.
type apiError struct {
	Code        int
	ErrCode     int `json:"err_code"`
	Description string
}

// unavailable reports whether the server has no leader to ask: it may be cut off.
func (e *apiError) unavailable() bool { return e != nil && e.Code == 503 }

func (e *apiError) Error() string { return short(e.Description) + " (" + strconv.Itoa(e.ErrCode) + ")" }

// The codes that NATS gives, see jetstream_errors in its server.
const (
	codeNoMessage     = 10037
	codeNoStream      = 10059
	codeNameInUse     = 10058
	codeWrongSequence = 10071
	codeInProcess     = 10164 // on a replicated stream: another write to these subjects is under way
)

// request sends a request once, and reads its answer as JSON.
func (b *Backend) request(ctx context.Context, subject string, header natsgo.Header, body []byte, into any) error {
	ctx, leave := b.under.enter(ctx, subject)
	defer leave()
	if d := b.noInbox.Load(); d != nil {
		return d
	}
	m, err := backends.WithContext(ctx, b.base, func() (*natsgo.Msg, error) { // each call may wait for a dead connection
		// An older server, after a reconnect, would ignore the condition.
		if version := b.nc.ConnectedServerVersion(); len(header) > 0 && version != "" {
			if err := tooOld(version); err != nil {
				return nil, err
			}
		}
		return b.nc.RequestMsgWithContext(ctx, &natsgo.Msg{Subject: subject, Header: header, Data: body})
	})
	if err != nil {
		if denied := (*deniedError)(nil); errors.As(context.Cause(ctx), &denied) {
			return denied
		}
		if why := b.refusal.Load(); why != nil {
			return fmt.Errorf("%w (%w)", *why, err)
		}
		b.unanswered(err)
		return err
	}
	var answer struct{ Error *apiError }
	switch {
	case json.Unmarshal(m.Data, &answer) == nil && answer.Error != nil && answer.Error.ErrCode == codeNoStream:
		b.replicated.Store(true) // the bucket that is made next may have replicas
	case json.Unmarshal(m.Data, &answer) == nil && answer.Error.unavailable():
		b.unanswered(natsgo.ErrNoResponders) // by a server that is cut off, when it has noticed
	case !b.replicated.Load() || b.base.ReadOnly():
		b.silence.end() // else a leader that was deposed may answer, see publish
	}
	if json.Unmarshal(m.Data, into) != nil {
		return errNotJetStream
	}
	return nil
}

// ask sends a request of the API of JetStream.
func (b *Backend) ask(ctx context.Context, what string, body any, into any) error {
	content, err := json.Marshal(body)
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return b.request(ctx, api+what, nil, content, into)
}

// get returns the latest message on the subjects that match. Only the stream's leader
// answers: a direct get, which any replica answers, would show old records.
func (b *Backend) get(ctx context.Context, subjects string) (message, error) {
	var answer struct {
		Error   *apiError
		Message *message
	}
	err := b.ask(ctx, "STREAM.MSG.GET."+b.stream(), map[string]string{"last_by_subj": subjects}, &answer)
	switch {
	case err != nil:
		return message{}, err
	case answer.Error != nil && answer.Error.ErrCode == codeNoMessage:
		return message{}, nil
	case answer.Error != nil:
		return message{}, answer.Error
	case answer.Message == nil || answer.Message.Seq == 0:
		return message{}, errNotJetStream
	}
	m := *answer.Message
	if len(m.Hdrs) > 0 {
		if m.header, err = natsgo.DecodeHeadersMsg(m.Hdrs); err != nil {
			return message{}, backends.Foreign("its headers cannot be read")
		}
	}
	return m, nil
}

// A write is a message that the stream takes only if the latest one on the subjects of
// has the expected sequence.
type write struct {
	subject, of string
	expected    uint64 // 0 means that there must be none
	header      natsgo.Header
	body        []byte
	term        bool // begins or ends a term
}

// put sends a write of an election until the stream decides it, and returns its sequence.
//
// A refusal because another write is under way decides nothing. Nor does one because of the
// sequence, if a majority of the replicas still has the expected one: it came from a leader
// that was deposed and does not know it. When such a leader is reached again it is sent what
// the new one is sent, and its answer may be the first; then the new one may take the write.
// All that put sends has the same condition.
func (b *Backend) put(ctx context.Context, election string, w write) (uint64, error) {
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		seq, err := b.publish(ctx, w)
		if errors.Is(err, backends.ErrConflict) && b.replicated.Load() {
			m, unread := b.latest(ctx, election, w.of)
			if unread != nil || m.Seq != w.expected {
				return 0, cmp.Or(unread, err)
			}
		} else if !errors.Is(err, errInProcess) {
			return seq, err
		}
		select {
		case <-ctx.Done():
			b.unanswered(ctx.Err())
			return 0, fmt.Errorf("%w: the stream has not decided the write: another one was under way all the time, or a leader that was deposed refused it: %w", backends.ErrUnavailable, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// publish sends a write once, and returns its sequence.
func (b *Backend) publish(ctx context.Context, w write) (uint64, error) {
	header := b.condition(w.of, w.expected)
	for name, values := range w.header {
		header[name] = values
	}
	var answer struct {
		Error     *apiError
		Stream    string
		Seq       uint64
		Duplicate bool
	}
	if err := b.request(ctx, w.subject, header, w.body, &answer); err != nil {
		return 0, err
	}
	if answer.Error != nil && answer.Error.ErrCode == codeInProcess {
		return 0, errInProcess // by a leader that may have no majority to decide the other one
	}
	if !answer.Error.unavailable() {
		b.silence.end()
	}
	switch {
	case answer.Error != nil && answer.Error.ErrCode == codeWrongSequence:
		return 0, backends.ErrConflict
	case answer.Error != nil:
		return 0, answer.Error
	case answer.Stream != b.stream() || answer.Seq == 0 || answer.Duplicate:
		return 0, errNotJetStream
	}
	return answer.Seq, nil
}

// confirm asks a majority of the stream's replicas whether the latest message on the
// subjects has the sequence. It is a write with that condition: a leader that was deposed,
// and does not know it, gets no majority for it. It goes to a key of the election's own,
// which has no record, is marked as deleted and keeps one message.
//
// The message has to be stored. One that the replicas refuse when a majority has it, as for
// another id of the last message, costs nothing and confirms as much. But nats-server 2.12.3
// forgets such a refusal when it is killed before its next snapshot, and then applies a
// message after it again: from then on that replica counts sequences in another way than
// the others, and a condition holds on it that does not hold on them.
//
// A stream decides one write with the same condition at a time. The condition is spelt in
// another way than that of a write, so that no read delays a renewal.
func (b *Backend) confirm(ctx context.Context, election, subjects string, seq uint64) (bool, error) {
	spellings := [...]string{"$KV.*.", "*." + b.bucket + ".", "*.*."}
	_, err := b.publish(ctx, write{
		subject:  b.subject(election),
		of:       spellings[rand.IntN(len(spellings))] + strings.TrimPrefix(subjects, b.keys()),
		expected: seq,
		header:   natsgo.Header{"KV-Operation": {"DEL"}},
	})
	if errors.Is(err, backends.ErrConflict) || errors.Is(err, errInProcess) {
		return false, nil
	}
	return err == nil, err
}

// condition is what makes the stream refuse a message unless the latest one on the
// subjects has the sequence.
func (b *Backend) condition(subjects string, seq uint64) natsgo.Header {
	return natsgo.Header{
		"Nats-Expected-Stream":                        {b.stream()},
		"Nats-Expected-Last-Subject-Sequence":         {strconv.FormatUint(seq, 10)},
		"Nats-Expected-Last-Subject-Sequence-Subject": {subjects},
	}
}

// calls are the requests and watches under way. NATS reports a missing permission and
// a lost connection beside them.
type calls struct {
	mutex sync.Mutex
	all   map[*call]bool
}

type call struct {
	subject string
	end     context.CancelCauseFunc
}

// enter returns a context that also ends when the call cannot be answered any more.
func (c *calls) enter(ctx context.Context, subject string) (joined context.Context, leave func()) {
	ctx, end := context.WithCancelCause(ctx)
	entered := &call{subject, end}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.all == nil {
		c.all = map[*call]bool{}
	}
	c.all[entered] = true
	return ctx, func() {
		end(nil)
		c.mutex.Lock()
		defer c.mutex.Unlock()
		delete(c.all, entered)
	}
}

// end ends the calls that the condition holds for.
func (c *calls) end(which func(subject string) bool, why error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for entered := range c.all {
		if which(entered.subject) {
			entered.end(why)
		}
	}
}

// A silence is how long requests have had no answer.
type silence struct {
	mutex sync.Mutex
	since time.Time
	moved time.Time // when another server was last tried
}

const (
	// tooLong is how long requests may have no answer before another server is tried.
	tooLong = 2 * time.Second

	// settled is the least time between two such tries: while a stream elects a leader,
	// no server has an answer.
	settled = 10 * time.Second
)

func (s *silence) end() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.since = time.Time{}
}

// lasts notes a request without an answer, and reports whether it is time to try
// another server.
func (s *silence) lasts(now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.since) < tooLong || now.Sub(s.moved) < settled {
		return false
	}
	s.since, s.moved = time.Time{}, now
	return true
}

// unanswered goes to another server, if there is one, when requests have had no answer
// for a while: this one may be cut off from the others, and takes connections all the
// same. It leaves a connection that was given to New, whose other users it would disturb,
// and one that is being made again, whose pauses between the tries it would cut short.
func (b *Backend) unanswered(err error) {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, natsgo.ErrNoResponders) {
		return
	}
	if !b.owned || !b.silence.lasts(time.Now()) {
		return
	}
	b.aside.Go(func() { // as each of these may wait for a dead connection
		if b.nc.IsConnected() && len(b.nc.Servers()) > 1 {
			b.nc.ForceReconnect()
		}
	})
}
