package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What the API server would not miss is looked for in the requests.
func TestRequests(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	second, err := b.Swap(t.Context(), "a", first, renewed(first))
	must(t, err)
	if r, err := b.Load(t.Context(), "a"); err != nil || r != second {
		t.Errorf("got %+v, %v, want %+v", r, err, second)
	}
	get, post, put := f.requests("GET")[0], f.requests("POST")[0], f.requests("PUT")[0]
	if get.url.RawQuery != "" {
		t.Errorf("a read asks for %s, which may be answered from a cache", get.url)
	}
	for _, r := range []*request{get, post, put} {
		if r.proto != "HTTP/1.1" || r.header.Get("Authorization") != "Bearer hunter2" {
			t.Errorf("%s is sent over %s with %q", r.what, r.proto, r.header)
		}
	}
	if m := post.body["metadata"].(map[string]any); m["uid"] != nil || m["resourceVersion"] != nil {
		t.Errorf("a creation is sent with %v", m)
	}
	if m := put.body["metadata"].(map[string]any); m["uid"] != "uid-101" || m["resourceVersion"] != "101" {
		t.Errorf("a change must be sent with uid and resource version, and is with %v", m)
	}
	// Through another handle, which has not seen it.
	other := f.open(t)
	_, err = other.Swap(t.Context(), "a", second, renewed(second))
	must(t, err)
	if m := f.requests("PUT")[1].body["metadata"].(map[string]any); m["uid"] != "uid-101" || m["resourceVersion"] != "102" {
		t.Errorf("a change must be sent with uid and resource version, and is with %v", m)
	}
}

func TestSwapConflicts(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("one that exists: %v", err)
	}
	_, err = b.Swap(t.Context(), "a", first, renewed(first))
	must(t, err)
	if _, err := b.Swap(t.Context(), "a", first, renewed(first)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("an old version: %v", err)
	}
	f.remove("a")
	if _, err := b.Swap(t.Context(), "a", first, renewed(first)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("one that was deleted: %v", err)
	}
	for _, v := range []backends.Version{"x", "/", "a/", "/1"} {
		if _, err := b.Swap(t.Context(), "a", backends.Record{Version: v}, record); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("version %q: %v", v, err)
		}
	}
}

// Others' labels and owners stay, and what kubectl shows is about the leader.
func TestLeaseOfOthers(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	f.mutex.Lock()
	l := f.objects["a"]
	l.Metadata.Labels["team"], l.Metadata.Finalizers, l.Metadata.OwnerReferences = "blue", []string{"x/y"}, []byte(`[{"uid":"u"}]`)
	f.set("a", l, "MODIFIED")
	f.mutex.Unlock()
	r, err := b.Load(t.Context(), "a")
	must(t, err)
	if r.Version == first.Version {
		t.Error("the version stays the same")
	}
	created := l.Spec
	if _, _, err := b.follow("a", event{"MODIFIED", []byte(strings.Replace(marshal(l), `"resourceVersion":"101"`, `"resourceVersion":"100"`, 1))}, ""); err != nil {
		t.Fatal(err) // one that is late
	}
	next := renewed(r)
	next.TTL = 4500 * time.Millisecond
	r, err = b.Swap(t.Context(), "a", r, next)
	must(t, err)
	l = f.objects["a"]
	if !reflect.DeepEqual(l.Metadata.Labels, map[string]string{"team": "blue", managedBy: managedByElector}) || !slices.Equal(l.Metadata.Finalizers, []string{"x/y"}) || string(l.Metadata.OwnerReferences) != `[{"uid":"u"}]` {
		t.Errorf("the metadata became %+v", l.Metadata)
	}
	if l.Spec.HolderIdentity != "h" || l.Spec.LeaseDurationSeconds != 5 || l.Spec.AcquireTime != created.AcquireTime || l.Spec.LeaseTransitions != 0 {
		t.Errorf("after a renewal: %+v", l.Spec)
	}
	asked := r
	asked.Extensions = `{"t_request":"1"}`
	before := l.Spec
	r, err = b.Swap(t.Context(), "a", r, asked)
	must(t, err)
	if l = f.objects["a"]; l.Spec != before {
		t.Errorf("another process's extension changed %+v to %+v", before, l.Spec)
	}
	vacant := renewed(r)
	vacant.Holder = ""
	r, err = b.Swap(t.Context(), "a", r, vacant)
	must(t, err)
	if l = f.objects["a"]; l.Spec.HolderIdentity != "" {
		t.Errorf("after a release: %+v", l.Spec)
	}
	taken := record
	taken.Attempt.Nonce, taken.Holder = "m", "i"
	_, err = b.Swap(t.Context(), "a", r, taken)
	must(t, err)
	if l = f.objects["a"]; l.Spec.HolderIdentity != "i" || l.Spec.LeaseTransitions != 1 || l.Spec.AcquireTime == created.AcquireTime {
		t.Errorf("after an acquisition: %+v", l.Spec)
	}
}

func TestLoad(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	f.mutex.Lock()
	f.set("client-go", lease{Spec: spec{HolderIdentity: "x"}}, "ADDED")
	f.mutex.Unlock()
	if _, err := b.Load(t.Context(), "client-go"); !errors.Is(err, backends.ErrForeignRecord) || !strings.Contains(err.Error(), "another program") {
		t.Errorf("another program's Lease: %v", err)
	}
	f.put("a", "")
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
		t.Errorf("an empty annotation: %v", err)
	}
	f.put("a", string(backends.Encode("b", record)))
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
		t.Errorf("another election's record: %v", err)
	}
	f.put("a", string(backends.Encode("a", record)))
	good, err := b.Load(t.Context(), "a")
	must(t, err)
	if good.Version == "" || good.Holder != "h" {
		t.Errorf("got %+v", good)
	}
	f.on("GET", says(strings.Repeat(" ", maxAnswer+1)))
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
		t.Errorf("a large object: %v", err)
	}
}

// An answer that is not the API server's own, about this very Lease, is never taken
// for "there is no record" or for a conflict.
func TestWhoAnswers(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	made, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	l := f.objects["a"]
	for what, answer := range map[string]http.HandlerFunc{
		"a proxy's 404":           http.NotFound,
		"a proxy's 409":           func(w http.ResponseWriter, r *http.Request) { http.Error(w, "conflict", http.StatusConflict) },
		"404 for the namespace":   refuses(404, "NotFound", `namespaces "team" not found`, "namespaces", "team"),
		"404 for another Lease":   refuses(404, "NotFound", "", "leases", "b"),
		"404 for the API":         refuses(404, "NotFound", "the server could not find the requested resource", "", ""),
		"409 of a quota":          refuses(409, "Conflict", "Operation cannot be fulfilled on resourcequotas", "resourcequotas", "a"),
		"409 of a webhook":        refuses(409, "Conflict", `admission webhook "x" denied the request`, "", ""),
		"no object":               says(`{}`),
		"null":                    says(`null`),
		"a page":                  says(`<html>`),
		"a status instead":        says(`{"kind":"Status","status":"Success"}`),
		"another Lease":           says(strings.Replace(marshal(l), `"name":"a"`, `"name":"b"`, 1)),
		"a Lease without version": says(strings.Replace(marshal(l), `"resourceVersion"`, `"x"`, 1)),
		"a Lease without uid":     says(strings.Replace(marshal(l), `"uid"`, `"x"`, 1)),
		"a redirection": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, leases+"/b", http.StatusTemporaryRedirect)
		},
	} {
		for _, method := range []string{"GET", "POST", "PUT"} {
			f.on(method, answer)
		}
		if r, err := b.Load(t.Context(), "a"); err == nil || errors.Is(err, backends.ErrConflict) {
			t.Errorf("%s: Load returns %+v and %v", what, r, err)
		}
		for _, prev := range []backends.Record{{}, made} {
			if r, err := b.Swap(t.Context(), "a", prev, renewed(made)); err == nil || errors.Is(err, backends.ErrConflict) {
				t.Errorf("%s: Swap returns %+v and %v", what, r, err)
			}
		}
	}
}

// A webhook may change what is written.
func TestChangedRecord(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	made, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	f.on("PUT", func(w http.ResponseWriter, r *http.Request) { says(marshal(f.objects["a"]))(w, r) })
	if _, err := b.Swap(t.Context(), "a", made, renewed(made)); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "webhook") {
		t.Errorf("got %v", err)
	}
}

// A conditional write that is sent again could find its own first try.
func TestNothingIsSentTwice(t *testing.T) {
	for what, answer := range map[string]http.HandlerFunc{
		"500": refuses(500, "InternalError", "", "", ""),
		"503": refuses(503, "ServiceUnavailable", "", "", ""),
		"429": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "1")
			refuses(429, "TooManyRequests", "", "", "")(w, r)
		},
		"504":   refuses(504, "Timeout", "", "", ""),
		"reset": reset,
		"half": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.Write([]byte("{"))
		},
		"redirected": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, r.URL.Path+"?again=1", http.StatusTemporaryRedirect)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			theirs := f.Client() // over HTTP/2
			for i, b := range []*Backend{f.open(t), made(New(t.Context(), theirs, &Options{BaseURL: f.URL, Namespace: "team"}))} {
				defer b.Close()
				f.on("POST", answer)
				f.on("PUT", answer)
				for _, prev := range []backends.Record{{}, {Version: "u/1"}} {
					if _, err := b.Swap(t.Context(), "a", prev, record); !errors.Is(err, backends.ErrUnavailable) && what != "redirected" || err == nil {
						t.Errorf("got %v, want ErrUnavailable", err)
					}
				}
				if posts, puts := len(f.requests("POST")), len(f.requests("PUT")); posts != i+1 || puts != i+1 {
					t.Errorf("a creation was sent %d times, a change %d times", posts-i, puts-i)
				}
			}
		})
	}
}

func TestList(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	want := []string{"Invoices", "a", "b", "c", "invoices"}
	for _, name := range want {
		_, err := b.Swap(t.Context(), name, backends.Record{}, record)
		must(t, err)
	}
	f.mutex.Lock()
	f.set("others", lease{}, "ADDED")
	f.set("copy", f.objects["a"], "ADDED") // of a Lease, under another name
	f.mutex.Unlock()
	if names, err := b.List(t.Context()); err != nil || !slices.Equal(names, want) {
		t.Errorf("got %q, %v, want %q", names, err, want)
	}
	f.on("LIST", refuses(410, "Expired", "the provided continue parameter is too old", "", ""))
	if _, err := b.List(t.Context()); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestObjectName(t *testing.T) {
	for name, want := range map[string]string{
		"invoice-sender":         "invoice-sender",
		"a.b":                    "a.b",
		"a--b":                   "a--b",
		"0":                      "0",
		"invoice_sender":         "",
		"invoice-sender-":        "",
		"-a":                     "",
		"_":                      "election--",
		"a..b":                   "a-b--",
		"a.-b":                   "a-b--",
		"a--0123456789abcdef":    "a-0123456789abcdef--",
		strings.Repeat("X", 128): "",
	} {
		got := objectName(name)
		if !subdomain.MatchString(got) || len(got) > 253 || objectName(got) == got && got != name {
			t.Errorf("%q is kept as %q", name, got)
		}
		if got == name && want != name || strings.HasSuffix(want, "--") && !strings.HasPrefix(got, want) {
			t.Errorf("%q is kept as %q, want %q", name, got, want)
		}
	}
	// What is stored under a name must be found by later versions.
	if got, want := objectName("Invoice_Sender"), "invoice-sender--5fne3elm43ouech4"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestDeadline(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	for _, what := range []string{"GET", "POST", "GROUP", "WATCH"} {
		f.on(what, silent(t.Context()))
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, loading := b.Load(short(), "a")
	_, swapping := b.Swap(short(), "a", backends.Record{}, record)
	_, opening := open(short(), f.address(""))
	watching := b.Watch(short(), "a", func(backends.Record) { t.Error("something was reported") })
	for _, err := range []error{loading, swapping, opening, watching} {
		if !errors.Is(err, backends.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want ErrUnavailable and the deadline", err)
		}
	}
}

// Close ends what is under way, and leaves no connection, whatever the transports
// still do with theirs.
func TestClose(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	asked := make(chan struct{})
	f.on("GET", func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/stuck") {
			close(asked)
			silent(t.Context())(w, r)
		}
		f.one(w, r)
	})
	done, shown := make(chan error, 2), make(chan struct{})
	go func() { done <- b.Watch(t.Context(), "a", func(backends.Record) { close(shown) }) }()
	<-shown
	go func() { _, err := b.Load(t.Context(), "stuck"); done <- err }()
	<-asked
	must(t, b.Close())
	for range 2 {
		if err := <-done; !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "closed") {
			t.Errorf("what was under way: got %v", err)
		}
	}
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("a later call: %v", err)
	}
	b.connections.mutex.Lock()
	defer b.connections.mutex.Unlock()
	for one := range b.connections.open {
		if _, err := one.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("a connection is open: %v", err)
		}
	}
}

func wait(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("no connection was closed for 30 s")
	}
}

// A dial that ends after Close leaves no connection either.
func TestLateDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	all := newConnections(context.Background())
	one, err := all.dial(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	all.close()
	if _, err := one.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
	if conn, err := all.dial(t.Context(), "tcp", l.Addr().String()); err == nil {
		conn.Close()
		t.Error("a dial after Close has connected")
	}
}

// When a network goes dark, the second request must not wait on another of the
// dead connections.
func TestDarkNetwork(t *testing.T) {
	const many = 5
	f := newFake(t)
	b := f.open(t)
	var mutex sync.Mutex
	dark := map[string]bool{}
	var together sync.WaitGroup
	together.Add(many)
	f.on("GET", func(w http.ResponseWriter, r *http.Request) {
		mutex.Lock()
		dark[r.RemoteAddr] = true
		mutex.Unlock()
		together.Done()
		together.Wait()
		f.one(w, r)
	})
	var all sync.WaitGroup
	for range many {
		all.Go(func() {
			if _, err := b.Load(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(dark) != many {
		t.Fatalf("%d connections, want %d", len(dark), many)
	}
	f.on("GET", func(w http.ResponseWriter, r *http.Request) {
		if dark[r.RemoteAddr] {
			silent(t.Context())(w, r)
		} else {
			f.one(w, r)
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

// The token is read again for each request.
func TestTokenIsRotated(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	f.write(t, f.tokenFile, "another\n")
	_, err := b.Load(t.Context(), "a")
	must(t, err)
	if got := f.requests("GET")[0].header.Get("Authorization"); got != "Bearer another" {
		t.Errorf("the token sent is %q", got)
	}
	f.write(t, f.tokenFile, "")
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "token") {
		t.Errorf("an empty file: %v", err)
	}
}

func TestNewLeavesTheClientAlone(t *testing.T) {
	f := newFake(t)
	client := f.Client()
	for _, base := range []string{f.URL, f.URL + "/", strings.TrimPrefix(f.URL, "https://")} {
		b := made(New(t.Context(), client, &Options{BaseURL: base, Namespace: "team"}))
		if got, want := b.Describe().Store, "kubernetes://"+f.Listener.Addr().String()+"/team"; got != want {
			t.Errorf("the store is %q, want %q", got, want)
		}
		_, err := b.Load(t.Context(), "a")
		must(t, err)
		must(t, b.Close())
	}
	if client.CheckRedirect != nil {
		t.Error("the client was changed")
	}
	if got := f.requests("GET")[0].header.Get("Authorization"); got != "" {
		t.Errorf("the token sent is %q", got)
	}
	secret := &url.URL{Scheme: "https", User: url.UserPassword("u", "hunter2"), Host: "h"}
	if got := made(New(t.Context(), client, &Options{BaseURL: secret.String(), Namespace: "team"})).Describe().Store; strings.Contains(got, "hunter2") {
		t.Errorf("the store is %q", got)
	}
}
