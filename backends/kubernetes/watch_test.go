package kubernetes

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// A watched Watch reports to a channel.
type watched struct {
	states chan backends.Record
	ended  chan error
}

func watch(t *testing.T, b *Backend) watched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := watched{make(chan backends.Record, 100), make(chan error, 1)}
	go func() { w.ended <- b.Watch(ctx, "a", func(r backends.Record) { w.states <- r }); close(w.states) }()
	t.Cleanup(func() {
		cancel()
		for range w.states {
		}
	})
	return w
}

func (w watched) next(t *testing.T) backends.Record {
	t.Helper()
	r, ok := <-w.states
	if !ok {
		t.Fatalf("the Watch ended: %v", <-w.ended)
	}
	return r
}

func TestWatch(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	w := watch(t, b)
	if r := w.next(t); r.Exists() {
		t.Fatalf("first: %+v", r)
	}
	made, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	if r := w.next(t); r != made {
		t.Fatalf("created: %+v", r)
	}
	f.mutex.Lock()
	f.push("a", `{"type":"BOOKMARK","object":{"kind":"Lease","metadata":{"resourceVersion":"900"}}}`)
	f.push("a", `{"type":"OF A LATER VERSION","object":{}}`)
	f.mutex.Unlock()
	made, err = b.Swap(t.Context(), "a", made, renewed(made))
	must(t, err)
	if r := w.next(t); r != made {
		t.Fatalf("changed: %+v", r)
	}
	f.remove("a")
	if r := w.next(t); r.Exists() {
		t.Fatalf("deleted: %+v", r)
	}
	if q := f.requests("WATCH")[0]; q.url.Query().Get("fieldSelector") != "metadata.name=a" || q.url.Query().Get("allowWatchBookmarks") != "true" || q.url.Query().Has("resourceVersion") {
		t.Errorf("it asks for %s", q.url)
	}
}

// The cache of an API server may be old.
func TestWatchBeginsWithWhatIsNew(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first, err := b.Swap(t.Context(), "a", backends.Record{}, record)
	must(t, err)
	old := f.objects["a"]
	second, err := b.Swap(t.Context(), "a", first, renewed(first))
	must(t, err)
	f.cached = []string{told("ADDED", old), told("MODIFIED", f.objects["a"]), told("DELETED", old)}
	w := watch(t, b)
	if r := w.next(t); r != second {
		t.Fatalf("first: %+v, want %+v", r, second)
	}
	third, err := b.Swap(t.Context(), "a", second, renewed(second))
	must(t, err)
	if r := w.next(t); r != third {
		t.Fatalf("then: %+v, want %+v", r, third)
	}
	// Some API servers report a deletion with the version before it.
	f.cached = []string{told("DELETED", f.objects["a"])}
	w = watch(t, b)
	w.next(t)
	if r := w.next(t); r.Exists() {
		t.Fatalf("deleted: %+v", r)
	}
}

// Each of these ends a Watch, and may pass.
func TestWatchEnds(t *testing.T) {
	for what, line := range map[string]string{
		"the server's time-out": "",
		"history is compacted":  `{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old resource version: 1 (2)"}}`,
		"another error":         `{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd event received with PrevKv=nil"}}`,
		"an unreadable error":   `{"type":"ERROR","object":[]}`,
		"half an event":         `{"type":"ADDED","object":{"ki`,
		"no event":              `<html>`,
		"a long event":          `{"type":"` + strings.Repeat("x", maxAnswer+1) + `"}`,
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			w := watch(t, f.open(t))
			w.next(t)
			f.mutex.Lock()
			f.push("a", line)
			f.push("a", "")
			f.mutex.Unlock()
			err := <-w.ended
			if !errors.Is(err, errWatchEnded) || !errors.Is(err, backends.ErrUnavailable) || len(err.Error()) > 1000 {
				t.Errorf("it ends with %v", err)
			}
		})
	}
	t.Run("the record is foreign", func(t *testing.T) {
		f := newFake(t)
		w := watch(t, f.open(t))
		w.next(t)
		f.put("a", "x")
		if err := <-w.ended; !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("it ends with %v", err)
		}
	})
	t.Run("the connection is lost", func(t *testing.T) {
		f := newFake(t)
		w := watch(t, f.open(t))
		w.next(t)
		f.CloseClientConnections()
		if err := <-w.ended; !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("it ends with %v", err)
		}
	})
	for what, answer := range map[string]http.HandlerFunc{
		"it is refused":    refuses(403, "Forbidden", "leases is forbidden", "leases", ""),
		"it is compacted":  refuses(410, "Expired", "too old resource version", "", ""),
		"nothing is there": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "") },
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			f.on("WATCH", answer)
			b := f.open(t)
			if err := b.Watch(t.Context(), "a", func(backends.Record) {}); err == nil || errors.Is(err, backends.ErrDenied) != (what == "it is refused") {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

// Watches share a connection, and leave the one of calls alone.
func TestWatchesShareAConnection(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	first := watch(t, b)
	first.next(t)
	few := len(f.opened)
	for range 20 {
		watch(t, b).next(t)
	}
	if more := len(f.opened); more > few {
		t.Errorf("20 watches opened %d connections", more-few)
	}
	for _, q := range f.requests("WATCH") {
		if q.proto != "HTTP/2.0" {
			t.Fatalf("a watch goes over %s", q.proto)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"1", "2", -1}, {"2", "1", 1}, {"10", "9", 1}, {"9", "10", -1}, {"7", "7", 0}, {"7", "", 1}, {"x", "7", 1}, {"7", "x", 1}} {
		got := compare(c.a, c.b)
		if got < 0 != (c.want < 0) || got > 0 != (c.want > 0) {
			t.Errorf("%q and %q: %d", c.a, c.b, got)
		}
	}
}
