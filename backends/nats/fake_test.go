package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

// record is one that an election can have.
var record = backends.Record{Holder: "h", Token: 5, TTL: 15e9, RenewEvery: 4e9, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

// A fake plays as much of a connection, and of the stream of the bucket b, as the adapter
// uses. It has no watches.
type fake struct {
	mutex    sync.Mutex
	kept     []message // in the order of their sequences
	seq      uint64
	requests []string // the subject of each
	version  string
	cluster  string
	config   *config // nil if there is no stream
	answer   map[string]func(context.Context, *natsgo.Msg) (*natsgo.Msg, error)
	forced   int           // reconnects
	lost     bool          // the connection
	dead     chan struct{} // until it is closed, the connection takes nothing; nil if it does
}

func newFake() *fake {
	return &fake{version: "2.12.3", seq: 7, config: &config{Name: "KV_b", Subjects: []string{"$KV.b.>"}, Storage: "file", Discard: "new", Replicas: 3, MaxPerKey: 1, Metadata: map[string]string{"_nats.ver": "2.12.3"}},
		answer: map[string]func(context.Context, *natsgo.Msg) (*natsgo.Msg, error){}}
}

func (f *fake) backend() *Backend {
	b := newBackend("nats://h/b", "b", DefaultPrefix)
	b.nc, b.owned = f, true
	return b
}

func (f *fake) SubscribeSync(string) (*natsgo.Subscription, error) {
	f.waits()
	return nil, natsgo.ErrBadSubscription
}
func (f *fake) NewInbox() string               { return "_INBOX.x" }
func (f *fake) IsConnected() bool              { return !f.lost }
func (f *fake) Servers() []string              { return []string{"nats://h:1", "nats://i:1"} }
func (f *fake) ForceReconnect() error          { f.mutex.Lock(); defer f.mutex.Unlock(); f.forced++; return nil }
func (f *fake) ConnectedServerVersion() string { f.waits(); return f.version }
func (f *fake) ConnectedClusterName() string   { return f.cluster }

// waits waits as long as the connection takes nothing.
func (f *fake) waits() {
	if f.dead != nil {
		<-f.dead
	}
}

// instead has requests to a subject answered in another way; all, if it is "".
func (f *fake) instead(subject string, answer func(context.Context, *natsgo.Msg) (*natsgo.Msg, error)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answer[subject] = answer
}

func says(text string) func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) {
	return func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) { return &natsgo.Msg{Data: []byte(text)}, nil }
}

func fails(err error) func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) {
	return func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) { return nil, err }
}

// sent returns the subjects of the requests since the last call.
func (f *fake) sent() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	sent := f.requests
	f.requests = nil
	return sent
}

func (f *fake) RequestMsgWithContext(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
	f.mutex.Lock()
	f.requests = append(f.requests, m.Subject)
	answer, ok := f.answer[m.Subject]
	if !ok {
		answer = f.answer[""]
	}
	f.mutex.Unlock()
	if answer != nil {
		return answer(ctx, m)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	content, err := json.Marshal(f.serve(m))
	return &natsgo.Msg{Data: content}, err
}

func failure(code int, text string) map[string]any {
	return map[string]any{"error": map[string]any{"code": 400, "err_code": code, "description": text}}
}

func (f *fake) serve(m *natsgo.Msg) any {
	var asked struct {
		Last   string `json:"last_by_subj"`
		Filter string `json:"subjects_filter"`
		Offset int
	}
	what, isAPI := strings.CutPrefix(m.Subject, api)
	if isAPI {
		if err := json.Unmarshal(m.Data, &asked); err != nil {
			panic(err)
		}
	}
	switch {
	case what == "STREAM.CREATE.KV_b":
		f.config = &config{}
		if err := json.Unmarshal(m.Data, f.config); err != nil {
			panic(err)
		}
		f.config.Metadata = map[string]string{"_nats.ver": f.version}
		return map[string]any{"config": f.config}
	case f.config == nil:
		return failure(codeNoStream, "stream not found")
	case what == "STREAM.INFO.KV_b":
		subjects := map[string]int{}
		for _, kept := range f.kept {
			if asked.Filter != "" && matches(asked.Filter, kept.Subject) {
				subjects[kept.Subject] = 1
			}
		}
		return map[string]any{"config": f.config, "total": len(subjects), "state": map[string]any{"subjects": subjects}}
	case what == "STREAM.MSG.GET.KV_b":
		if last, ok := f.last(asked.Last); ok {
			return map[string]any{"message": map[string]any{"subject": last.Subject, "seq": last.Seq, "hdrs": last.Hdrs, "data": last.Data}}
		}
		return failure(codeNoMessage, "no message found")
	case isAPI:
		return failure(10025, "the fake has no "+what)
	}
	if want := m.Header.Get("Nats-Expected-Last-Subject-Sequence"); want != "" {
		of := m.Header.Get("Nats-Expected-Last-Subject-Sequence-Subject")
		last, _ := f.last(of)
		if strconv.FormatUint(last.Seq, 10) != want {
			return failure(codeWrongSequence, "wrong last sequence")
		}
	}
	if m.Header.Get("Nats-Expected-Last-Msg-Id") != "" {
		return failure(10070, "wrong last msg ID: ")
	}
	return map[string]any{"stream": "KV_b", "seq": f.keep(m.Subject, m.Header, m.Data)}
}

// keep puts a message in the stream.
func (f *fake) keep(subject string, header natsgo.Header, data []byte) uint64 {
	f.kept = slices.DeleteFunc(f.kept, func(m message) bool { return m.Subject == subject })
	f.seq++
	var hdrs bytes.Buffer
	if len(header) > 0 {
		hdrs.WriteString("NATS/1.0\r\n")
		for name, values := range header {
			fmt.Fprintf(&hdrs, "%s: %s\r\n", name, values[0])
		}
		hdrs.WriteString("\r\n")
	}
	f.kept = append(f.kept, message{Subject: subject, Seq: f.seq, Hdrs: hdrs.Bytes(), Data: data})
	return f.seq
}

func (f *fake) last(subjects string) (message, bool) {
	for _, m := range slices.Backward(f.kept) {
		if matches(subjects, m.Subject) {
			return m, true
		}
	}
	return message{}, false
}

// matches reports whether a subject is one of those that a pattern with '*' means.
func matches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	if len(p) != len(s) {
		return false
	}
	for i := range p {
		if p[i] != "*" && p[i] != s[i] {
			return false
		}
	}
	return true
}

// deleteKey does what nats kv del does with the key that has an election's record.
func (f *fake) deleteKey(t *testing.T, name string) {
	t.Helper()
	m, ok := f.last("$KV.b.elector." + name + ".*.*")
	if !ok {
		t.Fatalf("there is no record of %s", name)
	}
	f.keep(m.Subject, natsgo.Header{"KV-Operation": {"DEL"}}, nil)
}

// confirmation returns the message that reads of election a keep.
func (f *fake) confirmation() message {
	m, _ := f.last("$KV.b.elector.a")
	m.header, _ = natsgo.DecodeHeadersMsg(m.Hdrs)
	return m
}
