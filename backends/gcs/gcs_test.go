package gcs

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
	"github.com/elector-go/elector/internal/mute"
)

// Every write is one whole-object insert with a condition, every read one media
// request, and the version is the object's generation.
func TestRecordIsOneObject(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		expect := func(doing string, want map[string]int) {
			t.Helper()
			if got := s.Requests(); !maps.Equal(got, want) {
				t.Errorf("%s: %s took the requests %v, want %v", how, doing, got, want)
			}
		}
		name := strings.ReplaceAll(how, " ", "-")
		none, err := b.Load(t.Context(), name)
		if err != nil || none != (backends.Record{}) {
			t.Fatalf("%s: a missing object: got %+v and error %v", how, none, err)
		}
		expect("reading a missing object", map[string]int{"read": 1, "bucket": 1})

		last := backends.Record{}
		for i := range 3 {
			next := record
			next.Attempt.Sequence = uint64(i + 1)
			made, err := b.Swap(t.Context(), name, last, next)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			expect("writing", map[string]int{"write": 1})
			o := s.objects["elector/"+name]
			if made.Version != backends.Version(fmt.Sprint(o.generation)) || !bytes.Equal(o.content, backends.Encode(name, next)) {
				t.Errorf("%s: made %+v, and the object is %d: %s", how, made, o.generation, o.content)
			}
			if o.metadata["contentType"] != "application/json" || o.metadata["cacheControl"] != "no-store" {
				t.Errorf("%s: the object's metadata is %v", how, o.metadata)
			}
			found, err := b.Load(t.Context(), name)
			if err != nil || found != made {
				t.Fatalf("%s: wrote %+v, read %+v and error %v", how, made, found, err)
			}
			expect("reading", map[string]int{"read": 1})
			for _, prev := range []backends.Record{last, {Version: "17"}} {
				if _, err := b.Swap(t.Context(), name, prev, record); !errors.Is(err, backends.ErrConflict) {
					t.Errorf("%s: a swap from %q: got %v, want ErrConflict", how, prev.Version, err)
				}
			}
			expect("two conflicts", map[string]int{"write": 2})
			last = made
		}
		for _, version := range []backends.Version{"0", "-1", "etag"} {
			if _, err := b.Swap(t.Context(), name, backends.Record{Version: version}, record); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("%s: a swap from %q: got %v, want ErrConflict", how, version, err)
			}
		}
		expect("versions of another store", nil)
	}
}

// The elector retries. A write that the library sent again could fail because
// of the first.
func TestNothingIsSentTwice(t *testing.T) {
	s := newService(t)
	all := s.handles(t)
	for what, answer := range map[string]http.HandlerFunc{
		"408":   refusal(408, "timeout", "Request Timeout"),
		"409":   refusal(409, "conflict", "Conflict"),
		"429":   refusal(429, "rateLimitExceeded", "The object bucket/elector/a exceeded the rate limit for object mutation operations"),
		"500":   refusal(500, "internalError", "We encountered an internal error. Please try again."),
		"502":   refusal(502, "badGateway", "Bad Gateway"),
		"503":   refusal(503, "backendError", "Backend Error"),
		"reset": fakehttp.Reset,
	} {
		for how, b := range all {
			t.Run(what+", "+how, func(t *testing.T) {
				try := func(request string, call func(context.Context) error) {
					t.Helper()
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var sent atomic.Int32
					s.Instead(request, func(w http.ResponseWriter, r *http.Request) {
						if sent.Add(1) > 1 {
							cancel() // it need not go on for ever
						}
						answer(w, r)
					})
					if err := call(ctx); !errors.Is(err, backends.ErrUnavailable) || errors.Is(err, backends.ErrConflict) {
						t.Errorf("%s: got %v, want ErrUnavailable", request, err)
					}
					if n := sent.Load(); n != 1 {
						t.Errorf("one %s was sent %d times", request, n)
					}
				}
				for range 2 {
					for _, prev := range []backends.Record{{}, {Version: "17"}} {
						try("write", func(ctx context.Context) error { _, err := b.Swap(ctx, "a", prev, record); return err })
					}
					try("read", func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err })
				}
			})
		}
	}
}

// An answer that breaks off is an error: the record is not taken for
// missing, though the library may go on reading a generation that has been
// replaced.
func TestBrokenAnswer(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		s.Instead("read", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("generation") {
				http.Error(w, "No such object: bucket/elector/a", http.StatusNotFound)
				return
			}
			w.Header().Set("X-Goog-Generation", "17")
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		})
		s.Requests()
		r, err := b.Load(t.Context(), "a")
		if !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s: got %+v and error %v, want ErrUnavailable", how, r, err)
		}
		if n := s.Requests(); how == "Open" && n["read"] != 1 {
			t.Errorf("%s: one read took %d requests", how, n["read"])
		}
	}
}

// What is not there, and where it is not.
func TestMissing(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		for _, test := range []struct {
			bucket http.HandlerFunc
			want   error
		}{
			{nil, nil},
			{refusal(403, "forbidden", "a@b.c does not have storage.buckets.get access to the Google Cloud Storage bucket."), nil},
			{refusal(404, "notFound", "The specified bucket does not exist."), backends.ErrMisconfigured},
			{refusal(401, "required", "Anonymous caller does not have storage.buckets.get access"), backends.ErrDenied},
			{refusal(403, "rateLimitExceeded", "Slow down"), backends.ErrUnavailable},
			{refusal(503, "backendError", "Backend Error"), backends.ErrUnavailable},
		} {
			s.Instead("bucket", test.bucket)
			r, err := b.Load(t.Context(), "a")
			if !errors.Is(err, test.want) || r != (backends.Record{}) {
				t.Errorf("%s: got %+v and error %v, want %v", how, r, err, test.want)
			}
		}
		s.Instead("write", refusal(404, "notFound", "The specified bucket does not exist."))
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "there is no bucket bucket") {
			t.Errorf("%s: a write: got %v, want ErrMisconfigured", how, err)
		}
		s.Instead("write", nil)
	}
}

func TestForeignObjects(t *testing.T) {
	s := newService(t)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write(make([]byte, 1<<24))
	z.Close()
	contents := map[string]object{
		"empty":     {},
		"garbage":   {content: []byte("garbage")},
		"another's": {content: backends.Encode("b", record)},
		"zipped":    {content: zipped.Bytes(), header: http.Header{"Content-Encoding": {"gzip"}}},
	}
	all := s.handles(t)
	for what, o := range contents {
		s.set("elector/a", o)
		for how, b := range all {
			if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
				t.Errorf("%s, %s: got %+v and error %v, want ErrForeignRecord", what, how, r, err)
			}
		}
	}
	// One that is much too large is not read to its end.
	const size = 64 << 20
	written := make(chan int, 1)
	s.Instead("read", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Goog-Generation", "17")
		w.Header().Set("Content-Length", strconv.Itoa(size))
		sum := 0
		for sum < size {
			n, err := w.Write(make([]byte, 1<<16))
			sum += n
			if err != nil {
				break
			}
		}
		written <- sum
	})
	for how, b := range all {
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("too large, %s: got %+v and error %v, want ErrForeignRecord", how, r, err)
		}
		if n := <-written; n == size {
			t.Errorf("too large, %s: all of it was read", how)
		}
	}
}

// An answer that has no generation is not the service's.
func TestNoGeneration(t *testing.T) {
	s := newService(t)
	s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "{}")
	})
	s.Instead("read", func(w http.ResponseWriter, _ *http.Request) { w.Write(backends.Encode("a", record)) })
	b := made(New(t.Context(), s.client(t), &Options{Bucket: "bucket"}))
	if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("Load: got %+v and error %v, want ErrMisconfigured", r, err)
	}
	if r, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("Swap: got %+v and error %v, want ErrMisconfigured", r, err)
	}
}

func TestSilence(t *testing.T) {
	mute.Calls(t, record, func() (backends.Backend, func(http.HandlerFunc)) {
		s := newService(t)
		return s.handles(t)["Open"], func(h http.HandlerFunc) {
			s.Instead("read", h)
			s.Instead("write", h)
		}
	})
}

func TestSilenceDropsIdleConnections(t *testing.T) {
	s := newService(t)
	mute.Idle(t, s.handles(t)["Open"], func(h http.HandlerFunc) { s.Instead("read", h) }, s.read, s.Closed)
}

func TestClose(t *testing.T) {
	s := newService(t)
	client := s.client(t)
	mine := made(New(t.Context(), client, &Options{Bucket: "bucket"}))
	opened, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []backends.Backend{mine, opened} {
		for range 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s.Requests()
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("Load after Close: got %v, want ErrUnavailable", err)
		}
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("Swap after Close: got %v, want ErrUnavailable", err)
		}
		// Many, for a request that is sent a moment before it is cancelled.
		for range 2000 {
			b.Load(t.Context(), "a")
		}
		if n := s.Requests(); len(n) != 0 {
			t.Errorf("requests after Close: %v", n)
		}
	}
	if _, err := made(New(t.Context(), client, &Options{Bucket: "bucket", Prefix: "p/"})).Load(t.Context(), "a"); err != nil {
		t.Errorf("Close closed a client that was given to New: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	s := newService(t)
	for b, want := range map[backends.Backend]string{
		s.handles(t)["Open"]: "gs://bucket/elector/?endpoint=" + s.URL,
		made(New(t.Context(), s.client(t), &Options{Bucket: "bucket"})):                  "gs://bucket/elector/",
		made(New(t.Context(), s.client(t), &Options{Bucket: "bucket", Prefix: "here-"})): "gs://bucket/here-",
	} {
		d := b.Describe()
		if d.Store != want || d.MinTTL != 5*time.Second || d.MinWriteInterval != 1200*time.Millisecond || d.PushesRenewals {
			t.Errorf("got %+v, want %s", d, want)
		}
	}
}
