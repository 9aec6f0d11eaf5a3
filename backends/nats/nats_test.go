package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

const (
	read = "$JS.API.STREAM.MSG.GET.KV_b"
	info = "$JS.API.STREAM.INFO.KV_b"
)

func renewed(r backends.Record) backends.Record {
	r.Attempt.Sequence++
	return r
}

func acquired(r backends.Record) backends.Record {
	r.Holder, r.Token = "other", r.Token+1
	r.Attempt = backends.Attempt{Nonce: "m", Sequence: 1}
	return r
}

func vacated(r backends.Record) backends.Record {
	r.Holder = ""
	r.Attempt.Sequence++
	return r
}

func mustSwap(t *testing.T, b *Backend, name string, prev, next backends.Record) backends.Record {
	t.Helper()
	made, err := b.Swap(t.Context(), name, prev, next)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Every read is one request to the stream's leader, every write one message, and the key
// of the term stays as it is during the term.
func TestRecordIsTwoKeys(t *testing.T) {
	f := newFake()
	b := f.backend()
	expect := func(doing string, want ...string) {
		t.Helper()
		got := f.sent()
		for i, subject := range got {
			if parts := strings.Split(subject, "."); len(parts) == 6 && strings.HasPrefix(subject, "$KV.b.elector.a=b.") {
				got[i] = parts[5]
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s took the requests %q, want %q", doing, got, want)
		}
	}
	const name = "a.b"
	none, err := b.Load(t.Context(), name)
	if err != nil || none != (backends.Record{}) {
		t.Fatalf("a missing key: got %+v and error %v", none, err)
	}
	expect("reading nothing", read)
	first := mustSwap(t, b, name, none, record)
	expect("an acquisition", "term")
	second := mustSwap(t, b, name, first, renewed(first))
	third := mustSwap(t, b, name, second, renewed(second))
	expect("two renewals", "renewal", "renewal")
	for _, s := range []struct {
		r    backends.Record
		want string
	}{{first, "8.8"}, {second, "9.8"}, {third, "10.8"}} {
		if _, after, _ := strings.Cut(string(s.r.Version), "."); after != s.want {
			t.Errorf("version %q, want %q after the life", s.r.Version, s.want)
		}
	}
	if found, err := b.Load(t.Context(), name); err != nil || found != third {
		t.Errorf("wrote %+v, read %+v, %v", third, found, err)
	}
	expect("reading", read)
	for _, prev := range []backends.Record{first, second, {Version: "9"}, {Version: "a.b.c"}, {Version: "*.10.8"}, {Version: "a.0.0"}} {
		if _, err := b.Swap(t.Context(), name, prev, record); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("a swap from %q: got %v, want ErrConflict", prev.Version, err)
		}
	}
	expect("conflicts, and versions of other stores", "renewal", "renewal")
	if _, err := b.Swap(t.Context(), name, none, record); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("a second creation: got %v, want ErrConflict", err)
	}
	expect("a creation that conflicts", "term", read)
	vacant := mustSwap(t, b, name, third, vacated(third))
	mustSwap(t, b, name, vacant, acquired(vacant))
	expect("a release and an acquisition", "term", "term")
	if n := len(f.kept); n != 2 {
		t.Errorf("the stream keeps %d messages: %+v", n, f.kept)
	}
}

// A key that was deleted has a marker in its place.
func TestDeletedKey(t *testing.T) {
	f := newFake()
	b := f.backend()
	first := mustSwap(t, b, "a", backends.Record{}, record)
	second := mustSwap(t, b, "a", first, renewed(first))
	f.deleteKey(t, "a")
	if r, err := b.Load(t.Context(), "a"); err != nil || r.Exists() {
		t.Errorf("a deleted key: got %+v, %v", r, err)
	}
	if names, err := b.List(t.Context()); err != nil || len(names) != 0 {
		t.Errorf("listed %q, %v", names, err)
	}
	for _, prev := range []backends.Record{first, second} {
		if _, err := b.Swap(t.Context(), "a", prev, acquired(prev)); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("from before the deletion: got %v, want ErrConflict", err)
		}
	}
	f.sent()
	again := mustSwap(t, b, "a", backends.Record{}, record)
	if sent := f.sent(); len(sent) != 5 { // two confirm that there is a marker, see put
		t.Errorf("a creation took %q", sent)
	}
	if found, err := b.Load(t.Context(), "a"); err != nil || found != again || found.Version == first.Version {
		t.Errorf("read %+v, %v; want %+v", found, err, again)
	}
}

// A marker on a key that is not one of the election's, as of a read through a handle whose
// prefix lies below this one's, is later than the record of a leader. Whoever took it for
// a deleted record would create a second one.
func TestForeignMarker(t *testing.T) {
	for _, key := range []string{"a.life.leaf", "a.strange life.term", "a." + strings.Repeat("x", 65) + ".term"} {
		f := newFake()
		b := f.backend()
		first := mustSwap(t, b, "a", backends.Record{}, record)
		f.keep("$KV.b.elector."+key, natsgo.Header{"KV-Operation": {"DEL"}}, nil)
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("%s: a read gives %+v, %v; want ErrForeignRecord", key, r, err)
		}
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, acquired(record)); !errors.Is(err, backends.ErrForeignRecord) || errors.Is(err, backends.ErrConflict) {
			t.Errorf("%s: a creation gives %v, want ErrForeignRecord", key, err)
		}
		if names, err := b.List(t.Context()); err != nil || !slices.Equal(names, []string{"a"}) {
			t.Errorf("%s: listed %q, %v", key, names, err)
		}
		mustSwap(t, b, "a", first, renewed(first))
	}

	// The confirmation of another handle's read.
	f := newFake()
	b := f.backend()
	mustSwap(t, b, "a", backends.Record{}, record)
	nested := newBackend("nats://h/b", "b", DefaultPrefix+".a.b")
	nested.nc = f
	nested.replicated.Store(true)
	if _, err := nested.Load(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
		t.Errorf("beside a nested prefix: got %+v, %v; want ErrForeignRecord", r, err)
	}
}

// A bucket that was missing, and is made again by somebody else, may have replicas: a read asks
// a majority of them.
func TestBucketMadeAgain(t *testing.T) {
	f := newFake()
	f.config.Replicas = 1
	b := f.backend()
	mustSwap(t, b, "a", backends.Record{}, record)
	made := f.config
	f.config, f.kept = nil, nil
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrMisconfigured) {
		t.Fatalf("without its bucket: %v", err)
	}
	made.Replicas = 3
	f.config = made
	f.sent()
	if r, err := b.Load(t.Context(), "a"); err != nil || r.Exists() {
		t.Fatalf("in the new bucket: %+v, %v", r, err)
	}
	if sent := f.sent(); len(sent) != 2 {
		t.Errorf("a read sends %q, and asks no majority", sent)
	}
}

// In a bucket that was deleted and made anew sequences come back. Nothing from before is
// taken for what is there now.
func TestBucketMadeAnew(t *testing.T) {
	f := newFake()
	b := f.backend()
	first := mustSwap(t, b, "a", backends.Record{}, record)
	second := mustSwap(t, b, "a", first, renewed(first))
	f.kept, f.seq = nil, 7
	made := mustSwap(t, b, "a", backends.Record{}, acquired(record))
	now := mustSwap(t, b, "a", made, renewed(made))
	for _, prev := range []backends.Record{first, second} {
		for _, next := range []backends.Record{renewed(prev), vacated(prev), acquired(prev)} {
			if _, err := b.Swap(t.Context(), "a", prev, next); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("from version %q: got %v, want ErrConflict", prev.Version, err)
			}
		}
	}
	if found, err := b.Load(t.Context(), "a"); err != nil || found != now || found.Version == second.Version {
		t.Errorf("read %+v, %v; want %+v", found, err, now)
	}
	lease := fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: first}}
	if _, err := Put(t.Context(), lease, "data", nil); !errors.Is(err, backends.ErrStale) {
		t.Errorf("a write under the lease from before: got %v, want ErrStale", err)
	}
}

// What a replica answers may be old.
func TestNeverDirect(t *testing.T) {
	f := newFake()
	b := f.backend()
	f.config.AllowDirect = true
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	mustSwap(t, b, "a", backends.Record{}, record)
	b.Load(t.Context(), "a")
	b.List(t.Context())
	for _, subject := range f.sent() {
		if strings.Contains(subject, "DIRECT") {
			t.Errorf("a direct read: %s", subject)
		}
	}
}

func TestAnswers(t *testing.T) {
	refused := func(code int) func(context.Context, *natsgo.Msg) (*natsgo.Msg, error) {
		return says(fmt.Sprintf(`{"error":{"code":400,"err_code":%d,"description":"refused"},"stream":"KV_b","seq":0}`, code))
	}
	for name, test := range map[string]struct {
		answer func(context.Context, *natsgo.Msg) (*natsgo.Msg, error)
		want   error
		says   string
	}{
		"a wrong sequence":          {refused(10071), backends.ErrConflict, ""},
		"no stream":                 {refused(10059), backends.ErrMisconfigured, "nats kv add b"},
		"no JetStream":              {refused(10039), backends.ErrMisconfigured, "enable JetStream"},
		"another stream":            {refused(10060), backends.ErrMisconfigured, "KV_b"},
		"sealed":                    {refused(10109), backends.ErrReadOnly, "sealed"},
		"too large":                 {refused(10054), backends.ErrMisconfigured, "max_msg_size"},
		"full":                      {refused(10077), backends.ErrUnavailable, "limits"},
		"no leader":                 {refused(10008), backends.ErrUnavailable, "nats stream info"},
		"another code":              {refused(1), backends.ErrUnavailable, "nats stream info"},
		"no responders":             {fails(natsgo.ErrNoResponders), backends.ErrUnavailable, "nats stream info"},
		"reconnecting":              {fails(natsgo.ErrReconnectBufExceeded), backends.ErrUnavailable, "made again"},
		"bad credentials":           {fails(natsgo.ErrAuthorization), backends.ErrDenied, "creds"},
		"not JSON":                  {says("+OK"), backends.ErrMisconfigured, "another subscriber"},
		"another stream's ack":      {says(`{"stream":"KV_c","seq":8}`), backends.ErrMisconfigured, "another subscriber"},
		"an ack without a sequence": {says(`{"stream":"KV_b"}`), backends.ErrMisconfigured, "another subscriber"},
		"a duplicate":               {says(`{"stream":"KV_b","seq":8,"duplicate":true}`), backends.ErrMisconfigured, "another subscriber"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			b := f.backend()
			first := mustSwap(t, b, "a", backends.Record{}, record)
			f.instead("", test.answer)
			_, err := b.Swap(t.Context(), "a", first, renewed(first))
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) || errors.Is(err, backends.ErrConflict) != (test.want == backends.ErrConflict) {
				t.Errorf("got %v, want %v with %q", err, test.want, test.says)
			}
		})
	}
}

// underWay is the answer to a write while another one has not been decided.
var underWay = says(`{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}`)

// A write that was refused because another one is under way finds no other version: it is
// sent until the stream decides it.
func TestSwapWhileAnotherIsUnderWay(t *testing.T) {
	f := newFake()
	b := f.backend()
	busy := func(times int) {
		f.instead("", func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
			if times--; times == 0 {
				f.instead("", nil)
			}
			return underWay(ctx, m)
		})
	}
	busy(3)
	first := mustSwap(t, b, "a", backends.Record{}, record)
	busy(3)
	second := mustSwap(t, b, "a", first, renewed(first))
	busy(3)
	if _, err := b.Swap(t.Context(), "a", first, renewed(first)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("from another version: got %v, want ErrConflict", err)
	}

	// A leader that is cut off never decides the other one.
	b.replicated.Store(true)
	f.instead("", underWay)
	synctest.Test(t, func(t *testing.T) {
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), tooLong)
			defer cancel()
			if _, err := b.Swap(ctx, "a", second, renewed(second)); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) {
				t.Errorf("until the context ended: got %v, want ErrUnavailable", err)
			}
		}
		b.aside.Wait()
		if f.forced != 1 {
			t.Errorf("%d reconnects, want 1", f.forced)
		}
	})
}

// A server before 2.12 checks the condition without the writes in flight of others.
func TestOldServer(t *testing.T) {
	f := newFake()
	b := f.backend()
	for version, ok := range map[string]bool{"2.12.0": true, "2.12.3": true, "2.11.15": false, "3.0.0-beta": true, "2.10.29": false, "1.4.1": false, "x": false} {
		f.version = version
		_, err := b.Swap(t.Context(), "v"+version, backends.Record{}, record)
		opened := b.prepare(t.Context(), Options{})
		if ok != (err == nil) || ok != (opened == nil) || !ok && (!errors.Is(err, backends.ErrMisconfigured) || !errors.Is(opened, backends.ErrMisconfigured)) {
			t.Errorf("version %s: a write %v, opening %v", version, err, opened)
		}
	}
}

func TestPrepare(t *testing.T) {
	f := newFake()
	b := f.backend()
	f.config = nil
	b.base.SetReadOnly(true)
	if err := b.base.Open(t.Context(), patience, func(ctx context.Context) error { return b.prepare(ctx, Options{}) }); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "no election has ever used it") || f.config != nil {
		t.Errorf("for reading alone: got %v and %+v", err, f.config)
	}
	b.base.SetReadOnly(false)
	err := b.base.Open(t.Context(), patience, func(ctx context.Context) error { return b.prepare(ctx, Options{Replicas: 3}) })
	for _, says := range []string{"bucket b", "nats://h/b", "create=true", "nats kv add b"} {
		if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), says) || f.config != nil {
			t.Errorf("without Create: got %v and %+v, want ErrMisconfigured with %s", err, f.config, says)
		}
	}
	for cluster, replicas := range map[string]int{"": 1, "c": 3} {
		f.config, f.cluster = nil, cluster
		if err := b.prepare(t.Context(), Options{Create: true}); err != nil {
			t.Fatal(err)
		}
		if c := f.config; c.Replicas != replicas || c.AllowDirect || c.MaxPerKey != 1 || c.Storage != "file" || c.Discard != "new" {
			t.Errorf("in cluster %q: made %+v", cluster, c)
		}
	}
}

func TestSuitable(t *testing.T) {
	for says, change := range map[string]func(*config){
		"":                       func(*config) {},
		"which a restart":        func(c *config) { c.Storage = "memory" },
		"--max-age=0":            func(c *config) { c.MaxAge = 1e9 },
		"retention":              func(c *config) { c.Retention = "workqueue" },
		"--max-msgs-per-subject": func(c *config) { c.MaxPerKey = -1 },
		"--discard=new":          func(c *config) { c.Discard, c.MaxBytes = "old", 1<<20 },
		"--max-msg-size":         func(c *config) { c.MaxSize = 1000 },
		"copies":                 func(c *config) { c.Mirror = map[string]any{"name": "m"} },
		"changes subjects":       func(c *config) { c.Transform = map[string]any{"src": ">"} },
		"sealed":                 func(c *config) { c.Sealed = true },
		"counters":               func(c *config) { c.Counter = true },
		"async":                  func(c *config) { c.Persist = "async" },
		"--ack":                  func(c *config) { c.NoAck = true },
		"its subjects":           func(c *config) { c.Subjects = []string{"x"} },
		"older than":             func(c *config) { c.Metadata = nil },
		"older than 2.12":        func(c *config) { c.Metadata = map[string]string{"_nats.ver": "2.11.15"} },
	} {
		f := newFake()
		change(f.config)
		err := f.backend().prepare(t.Context(), Options{})
		if says == "" && err != nil || says != "" && (!errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}

// NATS reports a missing permission beside the requests, which get no answer.
func TestDenied(t *testing.T) {
	for text, test := range map[string]struct{ subject, says string }{
		`nats: Permissions Violation for Publish to "` + read + `"`:      {read, "publish to " + read},
		`nats: permissions violation for subscription to "_INBOX.abc.*"`: {"", "subscribe to _INBOX.>"},
	} {
		f := newFake()
		b := f.backend()
		f.instead("", func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
			b.told(errors.New(text))
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, err := b.Load(t.Context(), "a")
		if !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: got %v, want ErrDenied with %q", text, err, test.says)
		}
		f.instead("", nil)
		if _, err := b.Load(t.Context(), "a"); (err == nil) != (test.subject != "") {
			t.Errorf("%s: afterwards a read gives %v", text, err)
		}
		b.disconnected()
		if _, err := b.Load(t.Context(), "a"); err != nil {
			t.Errorf("%s: over the next connection: %v", text, err)
		}
	}
}

// Credentials that expire end a connection. The file may have new ones, so what ended the
// last connection is not an answer to a request over the next; a refusal of that is.
func TestRotatedCredentials(t *testing.T) {
	f := newFake()
	b := f.backend()
	f.instead("", fails(natsgo.ErrReconnectBufExceeded))
	b.told(natsgo.ErrAuthExpired)
	b.disconnected()
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrDenied) {
		t.Errorf("while it reconnects: got %v, want ErrUnavailable", err)
	}
	b.told(natsgo.ErrAuthorization)
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("after a refusal: got %v, want ErrDenied", err)
	}
}

// Requests without an answer lead to another server, not more often than every ten
// seconds.
func TestAnotherServer(t *testing.T) {
	f := newFake()
	b := f.backend()
	f.instead("", fails(natsgo.ErrNoResponders))
	b.Load(t.Context(), "a")
	if f.forced != 0 {
		t.Error("one request without an answer is enough")
	}
	b.silence.since = b.silence.since.Add(-tooLong)
	b.Load(t.Context(), "a")
	b.aside.Wait()
	if f.forced != 1 {
		t.Errorf("%d reconnects, want 1", f.forced)
	}
	for _, c := range []struct{ owned, lost bool }{{false, false}, {true, true}} {
		b.owned, f.lost = c.owned, c.lost
		b.silence.since, b.silence.moved = time.Now().Add(-tooLong), time.Time{}
		b.Load(t.Context(), "a")
		b.aside.Wait()
		if f.forced != 1 {
			t.Fatalf("%+v: %d reconnects, want none", c, f.forced-1)
		}
	}
	b.owned, f.lost = true, false
	b.silence.since, b.silence.moved = time.Time{}, time.Now()
	begun := time.Now()
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {tooLong, false}, {settled - time.Second, false}, {settled + time.Second, true}, {settled + time.Second + tooLong, false}} {
		if got := b.silence.lasts(begun.Add(c.after)); got != c.want {
			t.Errorf("%v later: %v", c.after, got)
		}
	}
	f.instead("", nil)
	b.Load(t.Context(), "a")
	if !b.silence.since.IsZero() {
		t.Error("an answer does not end the silence")
	}
}

func TestList(t *testing.T) {
	f := newFake()
	b := f.backend()
	for _, name := range []string{"b", "a.c", "deleted"} {
		r := mustSwap(t, b, name, backends.Record{}, record)
		mustSwap(t, b, name, r, renewed(r))
	}
	f.deleteKey(t, "deleted")
	f.keep("$KV.b.elector.foreign.x.y", nil, []byte("foreign"))
	f.keep("$KV.b.elector.below.x", nil, nil)
	f.keep("$KV.b.data.a.b.c", nil, nil)
	if names, err := b.List(t.Context()); err != nil || !slices.Equal(names, []string{"a.c", "b", "foreign"}) {
		t.Errorf("got %q, %v", names, err)
	}
}

func TestDescribe(t *testing.T) {
	d := newFake().backend().Describe()
	if d.Store != "nats://h/b" || d.MinTTL != minTTL || !d.PushesRenewals {
		t.Errorf("got %+v", d)
	}
}

func TestInspect(t *testing.T) {
	f := newFake()
	for answer, fix := range map[string]string{
		`{"config":{"name":"KV_b","storage":"memory","num_replicas":3}}`: "bucket",
		`{"config":{"name":"KV_b","storage":"file","num_replicas":1,"max_msgs_per_subject":1,"discard":"new","subjects":["$KV.b.>"],"metadata":{"_nats.ver":"2.12.3"}}}`:                                                       "replicas",
		`{"config":{"name":"KV_b","storage":"file","num_replicas":3,"max_msgs_per_subject":1,"discard":"new","subjects":["$KV.b.>"],"metadata":{"_nats.ver":"2.12.3"},"max_bytes":100},"state":{"bytes":90}}`:                  "limits",
		`{"config":{"name":"KV_b","storage":"file","num_replicas":3,"max_msgs_per_subject":1,"discard":"new","subjects":["$KV.b.>"],"metadata":{"_nats.ver":"2.12.3"}},"cluster":{"replicas":[{"name":"n2","offline":true}]}}`: "replicas",
		`{"config":{"name":"KV_b","storage":"file","num_replicas":3,"max_msgs_per_subject":1,"discard":"new","subjects":["$KV.b.>"],"metadata":{"_nats.ver":"2.12.3"}}}`:                                                       "",
	} {
		f.instead(info, says(answer))
		i, err := f.backend().Inspect(t.Context(), 15e9)
		if err != nil {
			t.Fatal(err)
		}
		var fixes []string
		for _, finding := range i.Findings {
			if finding.Fix != "" {
				fixes = append(fixes, finding.What)
			}
		}
		if strings.Join(fixes, " ") != fix {
			t.Errorf("%s: fixes of %q, want %q: %+v", answer, fixes, fix, i.Findings)
		}
	}
}

// On a bucket with replicas a majority confirms each read, since a leader that was deposed
// answers like any other.
func TestConfirmedRead(t *testing.T) {
	f := newFake()
	b := f.backend()
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	old := mustSwap(t, b, "a", backends.Record{}, record)
	f.sent()
	if found, err := b.Load(t.Context(), "a"); err != nil || found != old {
		t.Errorf("read %+v, %v", found, err)
	}
	if sent := f.sent(); !slices.Equal(sent, []string{read, "$KV.b.elector.a"}) {
		t.Errorf("a read took the requests %q", sent)
	}
	if _, err := b.Load(t.Context(), "a"); err != nil || len(f.kept) != 2 || !f.confirmation().marker() {
		t.Errorf("reads keep one marker beside the record: %+v, %v", f.kept, err)
	}

	// The first answer is from before a write.
	stale := f.kept[0]
	now := mustSwap(t, b, "a", old, renewed(old))
	answers := 0
	f.instead(read, func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
		if answers++; answers > 1 {
			f.instead(read, nil)
			return f.RequestMsgWithContext(ctx, m)
		}
		content, err := json.Marshal(map[string]any{"message": map[string]any{"subject": stale.Subject, "seq": stale.Seq, "data": stale.Data}})
		return &natsgo.Msg{Data: content}, err
	})
	if found, err := b.Load(t.Context(), "a"); err != nil || found != now || answers != 2 {
		t.Errorf("read %+v, %v after %d answers; want %+v", found, err, answers, now)
	}

	f.instead("$KV.b.elector.a", func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
		f.instead("$KV.b.elector.a", nil)
		return underWay(ctx, m)
	})
	if found, err := b.Load(t.Context(), "a"); err != nil || found != now {
		t.Errorf("while another confirmation is under way: read %+v, %v; want %+v", found, err, now)
	}

	// A leader without a majority has no answer.
	f.instead("$KV.b.elector.a", fails(context.DeadlineExceeded))
	if found, err := b.Load(t.Context(), "a"); err == nil {
		t.Errorf("a read that no majority confirms: %+v", found)
	}
	b.base.SetReadOnly(true)
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Errorf("a handle that only reads: %v", err)
	}
	b.base.SetReadOnly(false)
	f.config.Replicas = 1
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Errorf("without replicas: %v", err)
	}
}

// A leader that was deposed refuses by what it has, and the new leader takes the write, or
// has not had it.
func TestRefusalByADeposedLeader(t *testing.T) {
	f := newFake()
	b := f.backend()
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	first := mustSwap(t, b, "a", backends.Record{}, record)
	refusal := says(`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 2"}}`)
	refuses := func(taken bool) {
		f.instead("", func(ctx context.Context, m *natsgo.Msg) (*natsgo.Msg, error) {
			f.instead("", nil)
			if taken {
				f.RequestMsgWithContext(ctx, m)
			}
			return refusal(ctx, m)
		})
	}
	refuses(false)
	second := mustSwap(t, b, "a", first, renewed(first))
	refuses(false)
	if _, err := Put(t.Context(), fakeLease{acquisition: backends.Acquisition{Backend: b, Election: "a", Record: second}}, "data", nil); err != nil {
		t.Errorf("a guarded write: %v", err)
	}
	refuses(true)
	if _, err := b.Swap(t.Context(), "a", second, renewed(second)); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("one that the new leader has taken: got %v, want ErrConflict", err)
	}
	f.instead("$KV.b.elector.a", fails(context.DeadlineExceeded))
	if _, err := b.Swap(t.Context(), "a", first, renewed(first)); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) {
		t.Errorf("a refusal that no majority confirms: got %v, want ErrUnavailable", err)
	}
}

// A leader of the stream that is cut off answers reads for a while, and then that there is
// none. What counts is whether a majority answers.
func TestAnotherServerThanADeposedLeaders(t *testing.T) {
	f := newFake()
	b := f.backend()
	if err := b.prepare(t.Context(), Options{}); err != nil {
		t.Fatal(err)
	}
	const write = "$KV.b.elector.a"
	unavailable := says(`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`)
	for i, c := range []struct {
		subject string
		answer  func(context.Context, *natsgo.Msg) (*natsgo.Msg, error)
	}{{write, fails(context.DeadlineExceeded)}, {write, unavailable}, {read, unavailable}} {
		f.instead(c.subject, c.answer)
		b.silence.moved = time.Time{}
		b.Load(t.Context(), "a")
		b.silence.since = b.silence.since.Add(-tooLong)
		b.Load(t.Context(), "a")
		b.aside.Wait()
		if f.forced != i+1 {
			t.Errorf("%d reconnects, want %d", f.forced, i+1)
		}
		f.instead(c.subject, nil)
	}
	b.Load(t.Context(), "a")
	if !b.silence.since.IsZero() {
		t.Error("an answer of a majority does not end the silence")
	}
}
