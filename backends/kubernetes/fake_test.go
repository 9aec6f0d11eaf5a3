package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A fake plays as much of an API server as the adapter uses, in namespace
// "team". Its watches begin with a stale cache if one is set.
type fake struct {
	*httptest.Server
	ca, tokenFile  string
	opened, closed chan struct{} // get one of each connection, if there is room

	mutex    sync.Mutex
	objects  map[string]lease
	revision int
	watchers map[chan string]string // to the object that they watch
	cached   []string               // events at the beginning of each watch, instead of the object
	answers  map[string]http.HandlerFunc
	asked    []*request
}

type request struct {
	what   string // GET, POST, PUT, LIST, WATCH, RULES, GROUP, NAMESPACE or VERSION
	header http.Header
	url    *url.URL
	proto  string
	body   map[string]any
}

const leases = "/apis/coordination.k8s.io/v1/namespaces/team/leases"

func newFake(t *testing.T) *fake {
	t.Helper()
	dir := t.TempDir()
	f := &fake{objects: map[string]lease{}, watchers: map[chan string]string{}, answers: map[string]http.HandlerFunc{}, revision: 100,
		opened: make(chan struct{}, 100), closed: make(chan struct{}, 100), ca: filepath.Join(dir, "ca.crt"), tokenFile: filepath.Join(dir, "token")}
	f.Server = httptest.NewUnstartedServer(f)
	f.EnableHTTP2 = true
	f.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		to := map[http.ConnState]chan struct{}{http.StateNew: f.opened, http.StateClosed: f.closed}[state]
		select {
		case to <- struct{}{}:
		default:
		}
	}
	f.StartTLS()
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	f.write(t, f.ca, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})))
	f.write(t, f.tokenFile, "hunter2\n")
	return f
}

func (f *fake) write(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &request{what: r.Method, header: r.Header, url: r.URL, proto: r.Proto}
	if r.Body != nil {
		json.NewDecoder(r.Body).Decode(&q.body)
	}
	serve := f.one
	switch {
	case r.URL.Path == "/readyz":
		q.what, serve = "READY", says("ok")
	case r.URL.Path == "/version":
		q.what, serve = "VERSION", says(`{"gitVersion":"v1.36.3"}`)
	case r.URL.Path == "/apis/coordination.k8s.io/v1":
		q.what, serve = "GROUP", says(`{"kind":"APIResourceList","groupVersion":"coordination.k8s.io/v1"}`)
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":
		q.what, serve = "RULES", says(`{"status":{"resourceRules":[{"verbs":["create"],"apiGroups":["coordination.k8s.io"],"resources":["leases"]},`+
			`{"verbs":["get","update","watch"],"apiGroups":["coordination.k8s.io"],"resources":["leases"],"resourceNames":["a"]}]}}`)
	case r.URL.Path == "/api/v1/namespaces/team":
		q.what, serve = "NAMESPACE", says(`{"kind":"Namespace"}`)
	case r.URL.Path == leases && r.URL.Query().Get("watch") == "1":
		q.what, serve = "WATCH", f.watch
	case r.URL.Path == leases && r.Method == http.MethodGet:
		q.what, serve = "LIST", f.list
	case !strings.HasPrefix(r.URL.Path, leases):
		serve = refuses(http.StatusNotFound, "NotFound", "the server could not find the requested resource", "", "")
	}
	f.mutex.Lock()
	f.asked = append(f.asked, q)
	if other := f.answers[q.what]; other != nil {
		serve = other
	}
	f.mutex.Unlock()
	r.Body = io.NopCloser(strings.NewReader(marshal(q.body)))
	serve(w, r)
}

// one serves what concerns one object.
func (f *fake) one(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	object := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, leases), "/")
	var sent lease
	if r.Method != http.MethodGet {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			refuses(400, "BadRequest", err.Error(), "", "")(w, r)
			return
		}
		object = sent.Metadata.Name
	}
	old, exists := f.objects[object]
	switch {
	case r.Method == http.MethodPost && exists:
		refuses(409, "AlreadyExists", `leases.coordination.k8s.io "`+object+`" already exists`, "leases", object)(w, r)
		return
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		old = f.set(object, sent, "ADDED")
	case !exists:
		refuses(404, "NotFound", `leases.coordination.k8s.io "`+object+`" not found`, "leases", object)(w, r)
		return
	case r.Method == http.MethodPut && sent.Metadata.version() != old.Metadata.version():
		refuses(409, "Conflict", "the object has been modified", "leases", object)(w, r)
		return
	case r.Method == http.MethodPut:
		old = f.set(object, sent, "MODIFIED")
	}
	io.WriteString(w, marshal(old))
}

// set stores an object, with the mutex held.
func (f *fake) set(object string, l lease, event string) lease {
	f.revision++
	l.APIVersion, l.Kind, l.Metadata.Name, l.Metadata.ResourceVersion = "coordination.k8s.io/v1", "Lease", object, strconv.Itoa(f.revision)
	if event == "ADDED" {
		l.Metadata.UID = fmt.Sprint("uid-", f.revision)
	}
	if f.objects[object] = l; event == "DELETED" {
		delete(f.objects, object)
	}
	f.push(object, told(event, l))
	return l
}

func (f *fake) push(object, line string) {
	for c, watched := range f.watchers {
		if watched == object {
			c <- line
		}
	}
}

// put makes content the record, behind the adapter's back.
func (f *fake) put(object, content string) lease {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	l, exists := f.objects[object]
	l.Metadata.Annotations = added(l.Metadata.Annotations, recordAnnotation, content)
	return f.set(object, l, map[bool]string{true: "MODIFIED", false: "ADDED"}[exists])
}

func (f *fake) remove(object string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.set(object, f.objects[object], "DELETED")
}

func told(event string, l lease) string {
	return `{"type":"` + event + `","object":` + marshal(l) + `}`
}

func (f *fake) watch(w http.ResponseWriter, r *http.Request) {
	object := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	lines := make(chan string, 1000)
	f.mutex.Lock()
	f.watchers[lines] = object
	first := f.cached
	if l, exists := f.objects[object]; exists && first == nil {
		first = []string{told("ADDED", l)}
	}
	f.mutex.Unlock()
	defer func() {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		delete(f.watchers, lines)
	}()
	http.NewResponseController(w).Flush()
	for _, line := range first {
		lines <- line
	}
	for {
		select {
		case line := <-lines:
			if line == "" {
				return
			}
			io.WriteString(w, line+"\n")
			http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// list serves pages of two.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	begin, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	key, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	var all []lease
	for _, object := range slices.Sorted(maps.Keys(f.objects)) {
		if l := f.objects[object]; l.Metadata.Labels[key] == value {
			all = append(all, l)
		}
	}
	all = all[begin:]
	next := ""
	if len(all) > 2 {
		all, next = all[:2], strconv.Itoa(begin+2)
	}
	io.WriteString(w, `{"kind":"LeaseList","metadata":{"continue":"`+next+`"},"items":`+marshal(all)+`}`)
}

// on answers all requests of a kind; nil means as usual.
func (f *fake) on(what string, answer http.HandlerFunc) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answers[what] = answer
}

// requests returns those of a kind.
func (f *fake) requests(what string) []*request {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.DeleteFunc(slices.Clone(f.asked), func(r *request) bool { return r.what != what })
}

func (f *fake) address(parameters string) *url.URL {
	return &url.URL{Scheme: "kubernetes", Host: f.Listener.Addr().String(), Path: "/team",
		RawQuery: "ca=" + f.ca + "&token_file=" + f.tokenFile + parameters}
}

// open returns a handle that is closed at the end of the test.
func (f *fake) open(t *testing.T) *Backend {
	t.Helper()
	b, err := open(t.Context(), f.address(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b.(*Backend)
}

func marshal(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
}

func refuses(code int, reason, message, kind, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		type m = map[string]any
		io.WriteString(w, marshal(m{"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message, "details": m{"kind": kind, "name": name}}))
	}
}

// silent gives no answer before the test ends or the client hangs up.
func silent(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler) // an answer now could overtake the client's end of the connection
	}
}

func reset(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

var record = backends.Record{Holder: "h", Token: 1, TTL: 15 * time.Second, RenewEvery: 4 * time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}

// renewed returns the record's next state.
func renewed(r backends.Record) backends.Record {
	r.Attempt.Sequence++
	return r
}

// made returns what New has made.
func made(b *Backend, err error) *Backend {
	if err != nil {
		panic(err)
	}
	return b
}
