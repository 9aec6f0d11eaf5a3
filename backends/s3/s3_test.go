package s3

import (
	"bytes"
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

// Every write is one whole object with a condition, every read one request, and the
// version is the object's entity tag.
func TestRecordIsOneObject(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		expect := func(doing string, want map[string]int) {
			t.Helper()
			if got := s.Requests(); !maps.Equal(got, want) {
				t.Errorf("%s: %s took the requests %v, want %v", how, doing, got, want)
			}
		}
		none, err := b.Load(t.Context(), how)
		if err != nil || none != (backends.Record{}) {
			t.Fatalf("%s: a missing object: got %+v and error %v", how, none, err)
		}
		expect("reading a missing object", map[string]int{"read": 1})
		last := backends.Record{}
		for i := range 3 {
			next := record
			next.Attempt.Sequence = uint64(i + 1)
			made, err := b.Swap(t.Context(), how, last, next)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			expect("writing", map[string]int{"write": 1})
			o := s.get("elector/" + how)
			if made.Version != backends.Version(o.tag()) || !bytes.Equal(o.content, backends.Encode(how, next)) {
				t.Errorf("%s: made %+v, and the object is %s: %s", how, made, o.tag(), o.content)
			}
			if o.header.Get("Content-Type") != "application/json" || o.header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s: the object's header is %v", how, o.header)
			}
			found, err := b.Load(t.Context(), how)
			if err != nil || found != made {
				t.Fatalf("%s: wrote %+v, read %+v and error %v", how, made, found, err)
			}
			expect("reading", map[string]int{"read": 1})
			for _, prev := range []backends.Record{last, {Version: `"17"`}} {
				if _, err := b.Swap(t.Context(), how, prev, record); !errors.Is(err, backends.ErrConflict) {
					t.Errorf("%s: a swap from %q: got %v, want ErrConflict", how, prev.Version, err)
				}
			}
			expect("two conflicts", map[string]int{"write": 2})
			last = made
		}
		if _, err := b.Swap(t.Context(), "other", last, record); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("%s: a swap of an object that is gone: got %v, want ErrConflict", how, err)
		}
		expect("an object that is gone", map[string]int{"write": 1})
	}
}

// A service answers a condition that does not hold in one of three ways. A missing
// bucket is none of them.
func TestConflicts(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		for _, c := range []struct {
			status  int
			code    string
			version backends.Version
			want    bool
		}{
			{412, "PreconditionFailed", "", true},
			{412, "PreconditionFailed", `"x"`, true},
			{409, "ConditionalRequestConflict", "", true},
			{409, "ConditionalRequestConflict", `"x"`, true},
			{409, "OperationAborted", `"x"`, false},
			{404, "NoSuchKey", `"x"`, true},
			{404, "NoSuchKey", "", false},
			{404, "NoSuchBucket", `"x"`, false},
			{404, "", `"x"`, false},
		} {
			s.Instead("write", refusal(c.status, c.code, "refused"))
			_, err := b.Swap(t.Context(), "a", backends.Record{Version: c.version}, record)
			if err == nil || errors.Is(err, backends.ErrConflict) != c.want {
				t.Errorf("%s: %d %s for version %q: got %v", how, c.status, c.code, c.version, err)
			}
		}
		s.Instead("write", nil)
	}
}

// The elector retries. A write that the library sent again could fail because
// of the first.
func TestNothingIsSentTwice(t *testing.T) {
	s := newService(t)
	all := s.handles(t)
	for what, answer := range map[string]http.HandlerFunc{
		"400":   refusal(400, "RequestTimeout", "Your socket connection to the server was not read from or written to within the timeout period."),
		"429":   refusal(429, "TooManyRequests", "Slow down"),
		"500":   refusal(500, "InternalError", "We encountered an internal error. Please try again."),
		"503":   refusal(503, "SlowDown", "Please reduce your request rate."),
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
				for _, prev := range []backends.Record{{}, {Version: `"17"`}} {
					try("write", func(ctx context.Context) error { _, err := b.Swap(ctx, "a", prev, record); return err })
				}
				try("read", func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err })
			})
		}
	}
}

// An answer that breaks off is an error: the record is not taken for missing.
func TestBrokenAnswer(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		s.Instead("read", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"17"`)
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		})
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) || !strings.Contains(err.Error(), "broke off") {
			t.Errorf("%s: got %+v and error %v, want ErrUnavailable", how, r, err)
		}
	}
}

// A torn read is the entity tag of one state with the content of another. A change
// that rested on it would overwrite a state that was never seen.
func TestTornReads(t *testing.T) {
	s := newService(t)
	content := backends.Encode("a", record)
	other := object{content: []byte("other")}.tag()
	for what, c := range map[string]struct {
		o    object
		want error
	}{
		"whole":                {object{content: content}, nil},
		"torn":                 {object{content: content, etag: other}, backends.ErrUnavailable},
		"torn, encrypted":      {object{content: content, etag: other, header: http.Header{"X-Amz-Server-Side-Encryption": {"AES256"}}}, backends.ErrUnavailable},
		"a key of KMS":         {object{content: content, etag: other, header: http.Header{"X-Amz-Server-Side-Encryption": {"aws:kms"}}}, nil},
		"two keys of KMS":      {object{content: content, etag: other, header: http.Header{"X-Amz-Server-Side-Encryption": {"aws:kms:dsse"}}}, nil},
		"a key of the caller":  {object{content: content, etag: other, header: http.Header{"X-Amz-Server-Side-Encryption-Customer-Algorithm": {"AES256"}}}, nil},
		"a tag that is no MD5": {object{content: content, etag: `"17-1"`}, nil},
		"torn, empty":          {object{etag: other}, backends.ErrUnavailable},
	} {
		s.set("elector/a", c.o)
		for how, b := range s.handles(t) {
			r, err := b.Load(t.Context(), "a")
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || r.Exists() != (c.want == nil) {
				t.Errorf("%s, %s: got %+v and error %v, want %v", what, how, r, err, c.want)
			}
			if c.want != nil && !errors.Is(err, errTorn) {
				t.Errorf("%s, %s: %v does not name the reason", what, how, err)
			}
		}
	}
}

// What is not there, and where it is not.
func TestMissing(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		for _, c := range []struct {
			read http.HandlerFunc
			want error
			says string
		}{
			{refusal(404, "NoSuchKey", "The specified key does not exist."), nil, ""},
			{refusal(404, "NoSuchBucket", "The specified bucket does not exist"), backends.ErrMisconfigured, "create-bucket --bucket bucket"},
			{refusal(403, "AccessDenied", "Access Denied"), backends.ErrDenied, "s3:ListBucket on arn:aws:s3:::bucket: without that, S3 answers the same for an object that does not exist"},
			{func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "404 page not found", 404) }, backends.ErrMisconfigured, "not S3"},
			{func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, backends.ErrMisconfigured, "not S3"},
			{refusal(503, "SlowDown", "Please reduce your request rate."), backends.ErrUnavailable, "throttles"},
		} {
			s.Instead("read", c.read)
			r, err := b.Load(t.Context(), "a")
			if !errors.Is(err, c.want) || r != (backends.Record{}) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %+v and error %v, want %v", how, r, err, c.want)
			}
		}
		s.Instead("read", nil)
	}
}

func TestForeignObjects(t *testing.T) {
	s := newService(t)
	all := s.handles(t)
	for what, o := range map[string]object{
		"empty":     {},
		"garbage":   {content: []byte("garbage")},
		"another's": {content: backends.Encode("b", record)},
		"zipped":    {content: []byte("\x1f\x8b"), header: http.Header{"Content-Encoding": {"gzip"}}},
	} {
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
		w.Header().Set("ETag", `"d41d8cd98f00b204e9800998ecf8427e"`)
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

// An answer that has no entity tag is not the service's.
func TestNoTag(t *testing.T) {
	s := newService(t)
	for how, b := range s.handles(t) {
		s.Instead("write", func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
		s.Instead("read", func(w http.ResponseWriter, _ *http.Request) { w.Write(backends.Encode("a", record)) })
		if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("%s, Load: got %+v and error %v, want ErrMisconfigured", how, r, err)
		}
		if r, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("%s, Swap: got %+v and error %v, want ErrMisconfigured", how, r, err)
		}
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
	for how, b := range s.handles(t) {
		for range 2 {
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s: Load after Close: got %v, want ErrUnavailable", how, err)
		}
		if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s: Swap after Close: got %v, want ErrUnavailable", how, err)
		}
	}
	if n := s.Requests(); len(n) != 0 {
		t.Errorf("requests after Close: %v", n)
	}
}

func TestDescribe(t *testing.T) {
	s := newService(t)
	here, err := New(t.Context(), s.client(t), &Options{Bucket: "bucket", Prefix: "here-"})
	if err != nil {
		t.Fatal(err)
	}
	for b, want := range map[backends.Backend]string{
		s.handles(t)["Open"]: "s3://bucket/elector/?region=us-east-1&endpoint=" + s.URL,
		here:                 "s3://bucket/here-?region=us-east-1&endpoint=" + s.URL,
	} {
		d := b.Describe()
		if d.Store != want || d.MinTTL != 3*time.Second || d.MinWriteInterval != 0 || d.PushesRenewals {
			t.Errorf("got %+v, want %s", d, want)
		}
	}
}

// List follows the pages, and asks for one level of keys.
func TestListPages(t *testing.T) {
	s := newService(t)
	s.Instead("list", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		answer := `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken><Contents><Key>elector/b</Key></Contents><Contents><Key>elector/c</Key></Contents></ListBucketResult>`
		switch {
		case q.Get("prefix") != "elector/" || q.Get("delimiter") != "/":
			refuse(w, 400, "InvalidArgument", "not what this test expects")
			return
		case q.Get("continuation-token") == "next":
			answer = `<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>elector/a</Key></Contents><Contents><Key>elector/.probe</Key></Contents><Contents><Key>elector/</Key></Contents></ListBucketResult>`
		}
		io.WriteString(w, answer)
	})
	for how, b := range s.handles(t) {
		names, err := b.(backends.Lister).List(t.Context())
		if err != nil || fmt.Sprint(names) != "[a b c]" {
			t.Errorf("%s: got %q, %v", how, names, err)
		}
	}
}
