package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// What an emulator would not miss is looked for in the requests themselves.
func TestRequests(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	if err != nil {
		t.Fatal(err)
	}
	next := first
	next.Attempt.Sequence++
	second, err := b.Swap(t.Context(), "a", first, next)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Load(t.Context(), "a"); err != nil || r.Exists() {
		t.Fatalf("no item: got %+v, %v", r, err)
	}
	type m = map[string]any
	is := func(what, body string, want m) {
		t.Helper()
		var got m
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: asked %v, want %v", what, got, want)
		}
	}
	key := m{"S": "a"}
	is("reading", f.bodies("GetItem")[0], m{"TableName": "elector", "Key": m{"election": key}, "ConsistentRead": true})
	puts := f.bodies("PutItem")
	is("creating", puts[0], m{"TableName": "elector", "Item": m{"election": key, "record": m{"S": string(first.Version)}},
		"ConditionExpression": "attribute_not_exists(#a)", "ExpressionAttributeNames": m{"#a": "election"}})
	is("replacing", puts[1], m{"TableName": "elector", "Item": m{"election": key, "record": m{"S": string(second.Version)}},
		"ConditionExpression": "#a = :prev", "ExpressionAttributeNames": m{"#a": "record"},
		"ExpressionAttributeValues": m{":prev": m{"S": string(first.Version)}}})
}

func TestLoad(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	quoted, _ := json.Marshal(string(backends.Encode("a", record)))
	good := `"record":{"S":` + string(quoted) + `}`
	for content, valid := range map[string]bool{
		good:                                       true,
		good + `,"note":{"S":"somebody's"}`:        true,
		`"other":{"S":"x"}`:                        false,
		`"record":{"S":""}`:                        false,
		`"record":{"N":"5"}`:                       false,
		`"record":{"NULL":true}`:                   false,
		`"record":{"BOOL":true}`:                   false,
		`"record":{"B":"e30="}`:                    false,
		`"record":{"SS":["a"]}`:                    false,
		`"record":{"M":{` + good + `}}`:            false,
		`"record":{"L":[{"S":"a"}]}`:               false,
		strings.Replace(good, `\"a\"`, `\"b\"`, 1): false,
		`"record":{"S":"` + strings.Repeat("x", 390<<10) + `"}`: false,
	} {
		f.on("GetItem", says(`{"Item":{"election":{"S":"a"},`+content+`}}`))
		r, err := b.Load(t.Context(), "a")
		if valid && (err != nil || r.Holder != "h" || !r.Exists()) || !valid && !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("%.80s: got %+v, %v", content, r, err)
		}
	}
}

// LoadMany asks for each name once, and what the service leaves out is not absent.
func TestLoadMany(t *testing.T) {
	f := newFake(t)
	b := f.open(t).(backends.BatchLoader)
	item := func(name string) string {
		quoted, _ := json.Marshal(string(backends.Encode(name, record)))
		return `{"election":{"S":"` + name + `"},"record":{"S":` + string(quoted) + `}}`
	}
	names := []string{"a", "b", "c", "a", "d"}
	var asked struct {
		RequestItems map[string]struct {
			Keys           []map[string]map[string]string
			ConsistentRead bool
		}
	}
	for _, test := range []struct {
		what, answer string
		want         []error // by name; nil is a record, errNone is none
	}{
		{"all are there", `{"Responses":{"elector":[` + item("d") + `,` + item("a") + `,` + item("c") + `,` + item("b") + `]},"UnprocessedKeys":{}}`, []error{nil, nil, nil, nil, nil}},
		{"some are absent", `{"Responses":{"elector":[` + item("b") + `]},"UnprocessedKeys":{}}`, []error{errNone, nil, errNone, errNone, errNone}},
		{"one is foreign", `{"Responses":{"elector":[` + item("a") + `,{"election":{"S":"b"}}]},"UnprocessedKeys":{}}`, []error{nil, backends.ErrForeignRecord, errNone, nil, errNone}},
		{"some are unprocessed", `{"Responses":{"elector":[` + item("b") + `]},"UnprocessedKeys":{"elector":{"Keys":[{"election":{"S":"a"}},{"election":{"S":"d"}}],"ConsistentRead":true}}}`,
			[]error{backends.ErrUnavailable, nil, errNone, backends.ErrUnavailable, backends.ErrUnavailable}},
		{"all are unprocessed", `{"Responses":{},"UnprocessedKeys":{"elector":{"Keys":[{"election":{"S":"a"}},{"election":{"S":"b"}},{"election":{"S":"c"}},{"election":{"S":"d"}}]}}}`,
			slices.Repeat([]error{backends.ErrUnavailable}, 5)},
		{"an unprocessed key cannot be read", `{"Responses":{"elector":[]},"UnprocessedKeys":{"elector":{"Keys":[{"election":{"N":"1"}}]}}}`,
			slices.Repeat([]error{backends.ErrUnavailable}, 5)},
		{"nothing is said", `{}`, slices.Repeat([]error{backends.ErrUnavailable}, 5)},
	} {
		t.Run(test.what, func(t *testing.T) {
			f.on("BatchGetItem", says(test.answer))
			for i, o := range b.LoadMany(t.Context(), names) {
				got := o.Err
				if got == nil && !o.Record.Exists() {
					got = errNone
				}
				if !errors.Is(got, test.want[i]) {
					t.Errorf("%s: %v and %v, want %v", names[i], o.Record, got, test.want[i])
				}
			}
		})
	}
	if err := json.Unmarshal([]byte(f.bodies("BatchGetItem")[0]), &asked); err != nil {
		t.Fatal(err)
	}
	if of := asked.RequestItems["elector"]; len(of.Keys) != 4 || !of.ConsistentRead {
		t.Errorf("it asked for %+v", of)
	}
	f.on("BatchGetItem", fails(400, "AccessDeniedException", ""))
	if o := b.LoadMany(t.Context(), names)[4]; !errors.Is(o.Err, backends.ErrDenied) || !strings.Contains(o.Err.Error(), "BatchGetItem") {
		t.Errorf("denied: %v", o.Err)
	}
}

// errNone stands for a record that does not exist.
var errNone = errors.New("no record")

// The SDK closes a request's body when the answer begins, which now and then
// cost the connection and the rest of the answer.
func TestLongAnswers(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	f.on("GetItem", says(`{"Item":{"election":{"S":"a"},"record":{"S":"`+strings.Repeat("x", 64<<10)+`"}}}`))
	for range 300 {
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
			t.Fatal(err)
		}
	}
}

// A conditional write that is sent again could find its own first try.
func TestNothingIsSentTwice(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"500":       fails(500, "InternalServerError", ""),
		"503":       fails(503, "ServiceUnavailable", ""),
		"throttled": fails(400, "ThrottlingException", ""),
		"exceeded":  fails(400, "ProvisionedThroughputExceededException", ""),
		"clock":     fails(400, "InvalidSignatureException", "Signature expired: 1 is now earlier than 2"),
		"reset":     reset,
		"half": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.Write([]byte("{"))
		},
		"redirected": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			t.Setenv("AWS_MAX_ATTEMPTS", "2")
			ours := f.open(t)
			theirs, err := New(t.Context(), f.client(), &Options{Table: "elector"})
			if err != nil {
				t.Fatal(err)
			}
			defer theirs.Close()
			f.on("GetItem", answer)
			f.on("PutItem", answer)
			for i, b := range []backends.Backend{ours, theirs} {
				if what == "redirected" && i == 1 {
					continue // their HTTP client's business
				}
				if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
					t.Errorf("Swap: got %v, want ErrUnavailable", err)
				}
				if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
					t.Errorf("Load: got %v, want ErrUnavailable", err)
				}
				if writes, reads := len(f.bodies("PutItem")), len(f.bodies("GetItem")); writes != i+1 || reads != i+1 {
					t.Errorf("one write was sent %d times, one read %d times", writes-i, reads-i)
				}
			}
		})
	}
}

// client is one of the kind that people bring along: it retries.
func (f *fake) client() *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region:           "eu-central-1",
		BaseEndpoint:     &f.URL,
		Credentials:      credentials.NewStaticCredentialsProvider("id", "hunter2", ""),
		HTTPClient:       f.Client(),
		RetryMaxAttempts: 2,
	})
}

func TestDeadline(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	for _, operation := range []string{"GetItem", "PutItem", "DescribeTable"} {
		f.on(operation, silent(t.Context()))
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, loading := b.Load(short(), "a")
	_, swapping := b.Swap(short(), "a", backends.Record{}, record)
	_, opening := open(short(), f.address(""))
	for _, err := range []error{loading, swapping, opening} {
		if !errors.Is(err, backends.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnavailable and the deadline", err)
		}
	}
}

// Close ends the request under way.
func TestClose(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	asked := make(chan struct{})
	f.on("GetItem", func(w http.ResponseWriter, r *http.Request) { close(asked); silent(t.Context())(w, r) })
	done := make(chan error)
	go func() { _, err := b.Load(t.Context(), "a"); done <- err }()
	<-asked
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the call under way: got %v", err)
	}
}

// No connection is left behind, also if the transport sees a call that Close has
// ended only after the connections were closed: it then keeps connections again.
func TestConnectionsEnd(t *testing.T) {
	t.Run("idle", func(t *testing.T) {
		f, opened, closed := connections(t)
		b := f.open(t)
		wait(t, opened)
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		wait(t, closed)
	})
	t.Run("of a call that ends late", func(t *testing.T) {
		f, opened, closed := connections(t)
		b := f.open(t).(*Backend)
		wait(t, opened)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GetConn:     func(string) { b.idle() },
			ConnectDone: func(string, string, error) { cancel() },
		})
		if _, err := b.Load(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		wait(t, opened)
		wait(t, closed)
		wait(t, closed)
	})
}

// connections returns a service that reports its connections.
func connections(t *testing.T) (f *fake, opened, closed chan struct{}) {
	f = unstarted(t)
	opened, closed = make(chan struct{}, 10), make(chan struct{}, 10)
	f.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		switch s {
		case http.StateNew:
			opened <- struct{}{}
		case http.StateClosed:
			closed <- struct{}{}
		}
	}
	f.Start()
	return f, opened, closed
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("no connection was opened or closed for 30 s")
	}
}

// When a network goes dark, the second request must not wait on another of the
// dead connections.
func TestDarkNetwork(t *testing.T) {
	const many = 5
	f := unstarted(t)
	var mutex sync.Mutex
	var state = map[net.Conn]http.ConnState{}
	f.Config.ConnState = func(c net.Conn, s http.ConnState) {
		mutex.Lock()
		defer mutex.Unlock()
		state[c] = s
	}
	f.Start()
	b := f.open(t)

	var together sync.WaitGroup
	together.Add(many)
	f.on("GetItem", func(w http.ResponseWriter, r *http.Request) { together.Done(); together.Wait(); says(`{}`)(w, r) })
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if _, err := b.Load(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	dark := map[string]bool{}
	mutex.Lock()
	for c := range state {
		dark[c.RemoteAddr().String()] = true
	}
	mutex.Unlock()
	if len(dark) < many {
		t.Fatalf("%d connections, want %d at least", len(dark), many)
	}
	f.on("GetItem", func(w http.ResponseWriter, r *http.Request) {
		if dark[r.RemoteAddr] {
			silent(t.Context())(w, r)
		} else {
			says(`{}`)(w, r)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := b.Load(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the first request goes through a dead connection: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := b.Load(ctx, "a"); err != nil {
		t.Errorf("the second request: %v", err)
	}
}

// Requests are counted, not connections: a server sees late that one was closed.
func TestConnectionsAreBounded(t *testing.T) {
	const many = awsclient.MostConnections
	f := newFake(t)
	b := f.open(t)
	var asking, full sync.WaitGroup
	asking.Add(4 * many)
	full.Add(many)
	var begun, underway atomic.Int64
	f.on("GetItem", func(w http.ResponseWriter, r *http.Request) {
		if n := underway.Add(1); n > many {
			t.Errorf("%d requests at once", n)
		}
		if begun.Add(1) <= many {
			full.Done()
		}
		asking.Wait()
		full.Wait()
		underway.Add(-1)
		says(`{}`)(w, r)
	})
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GetConn: func(string) { asking.Done() }})
	var all sync.WaitGroup
	for i := range 4 * many {
		all.Go(func() {
			if _, err := b.Load(ctx, fmt.Sprint("a", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestNewLeavesTheClientAlone(t *testing.T) {
	f := newFake(t)
	b, err := New(t.Context(), f.client(), &Options{Table: "elector"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.Describe().Store, "dynamodb://elector?region=eu-central-1&endpoint="+f.URL; got != want {
		t.Errorf("the store is %q, want %q", got, want)
	}
	b.Close()
	other, err := New(t.Context(), f.client(), &Options{Table: "elector", SingleRegion: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
