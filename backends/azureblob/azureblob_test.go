package azureblob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
	"github.com/elector-go/elector/internal/mute"
)

// Every write is one Put Blob with a condition, every read one Get Blob, and the
// version is the blob's ETag.
func TestRecordIsOneBlob(t *testing.T) {
	s := newServer(t)
	for how, b := range s.handles(t) {
		expect := func(doing string, want map[string]int) {
			t.Helper()
			if got := s.Requests(); !maps.Equal(got, want) {
				t.Errorf("%s: %s took the requests %v, want %v", how, doing, got, want)
			}
		}
		none, err := b.Load(t.Context(), how)
		if err != nil || none != (backends.Record{}) {
			t.Fatalf("%s: a missing blob: got %+v and error %v", how, none, err)
		}
		expect("reading a missing blob", map[string]int{"read": 1})

		last := backends.Record{}
		for i := range 3 {
			next := record
			next.Attempt.Sequence = uint64(i + 1)
			made, err := b.Swap(t.Context(), how, last, next)
			if err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			expect("writing", map[string]int{"write": 1})
			o := s.blobs["elector/"+how+".json"]
			if string(made.Version) != o.tag || !bytes.Equal(o.content, backends.Encode(how, next)) {
				t.Errorf("%s: made %+v, and the blob is %s: %s", how, made, o.tag, o.content)
			}
			if o.header.Get("x-ms-blob-content-type") != "application/json" || o.header.Get("x-ms-blob-cache-control") != "no-store" {
				t.Errorf("%s: the blob was sent with %v", how, o.header)
			}
			found, err := b.Load(t.Context(), how)
			if err != nil || found != made {
				t.Fatalf("%s: wrote %+v, read %+v and error %v", how, made, found, err)
			}
			expect("reading", map[string]int{"read": 1})
			for _, prev := range []backends.Record{last, {Version: `"0x17"`}} {
				if _, err := b.Swap(t.Context(), how, prev, record); !errors.Is(err, backends.ErrConflict) {
					t.Errorf("%s: a swap from %q: got %v, want ErrConflict", how, prev.Version, err)
				}
			}
			expect("two conflicts", map[string]int{"write": 2})
			last = made
		}
		if _, err := b.Swap(t.Context(), "gone", last, record); !errors.Is(err, backends.ErrConflict) {
			t.Errorf("%s: a swap of a blob that is gone: got %v, want ErrConflict", how, err)
		}
		s.Requests()
		// The first would hold for every state of the blob.
		for _, version := range []backends.Version{"*", `"*"`, `"a","b"`, `W/"0x1"`, "17"} {
			if _, err := b.Swap(t.Context(), how, backends.Record{Version: version}, record); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("%s: a swap from %q: got %v, want ErrConflict", how, version, err)
			}
		}
		expect("versions of another store", nil)
	}
}

// The elector retries. A write that the library sent again could fail because
// of the first.
func TestNothingIsSentTwice(t *testing.T) {
	s := newServer(t)
	all := s.handles(t)
	for what, answer := range map[string]http.HandlerFunc{
		"408":   refusalOf(408, "RequestTimeout", "Request Timeout"),
		"429":   refusalOf(429, "TooManyRequests", ""),
		"500":   refusalOf(500, "InternalError", "The server encountered an internal error. Please retry the request."),
		"500-t": refusalOf(500, "OperationTimedOut", "The operation could not be completed within the permitted time."),
		"502":   refusalOf(502, "", "Bad Gateway"),
		"503":   refusalOf(503, "ServerBusy", "The server is currently unable to receive requests. Please retry your request."),
		"reset": fakehttp.Reset,
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		},
	} {
		for how, b := range all {
			if what == "307" && how == "New" {
				continue // as the client does
			}
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
					for _, prev := range []backends.Record{{}, {Version: `"0x17"`}} {
						try("write", func(ctx context.Context) error { _, err := b.Swap(ctx, "a", prev, record); return err })
					}
					try("read", func(ctx context.Context) error { _, err := b.Load(ctx, "a"); return err })
				}
			})
		}
	}
}

// An answer that breaks off is an error, and is not continued.
func TestBrokenAnswer(t *testing.T) {
	s := newServer(t)
	for how, b := range s.handles(t) {
		s.Instead("read", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("ETag", `"0x17"`)
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		})
		r, err := b.Load(t.Context(), "a")
		if !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s: got %+v and error %v, want ErrUnavailable", how, r, err)
		}
		if n := s.Requests(); n["read"] != 1 {
			t.Errorf("%s: one read took %d requests", how, n["read"])
		}
	}
}

// What is not there, and where it is not: only the service's own word for a
// missing blob is one.
func TestMissing(t *testing.T) {
	s := newServer(t)
	for how, b := range s.handles(t) {
		for what, test := range map[string]struct {
			read http.HandlerFunc
			want error
		}{
			"no blob":          {nil, nil},
			"no container":     {refusalOf(404, "ContainerNotFound", "The specified container does not exist."), backends.ErrMisconfigured},
			"a 404 of a proxy": {http.NotFound, backends.ErrUnavailable},
			"another account":  {refusalOf(404, "ResourceNotFound", "The specified resource does not exist."), backends.ErrUnavailable},
		} {
			t.Run(how+", "+what, func(t *testing.T) {
				s.Instead("read", test.read)
				r, err := b.Load(t.Context(), "a")
				if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || r != (backends.Record{}) {
					t.Errorf("got %+v and error %v, want %v", r, err, test.want)
				}
			})
		}
		s.Instead("read", nil)
	}
}

func TestForeignBlobs(t *testing.T) {
	s := newServer(t)
	all := s.handles(t)
	for what, content := range map[string][]byte{
		"empty": {}, "garbage": []byte("garbage"), "another's": backends.Encode("b", record), "too large": make([]byte, 16<<20),
	} {
		s.set("elector/a.json", object{content: content})
		for how, b := range all {
			if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrForeignRecord) {
				t.Errorf("%s, %s: got %+v and error %v, want ErrForeignRecord", what, how, r, err)
			}
		}
	}
}

// An answer without an ETag of one state is not the service's.
func TestNoTag(t *testing.T) {
	for name, tag := range map[string]string{"none": "", "any": "*", "any, quoted": `"*"`, "weak": `W/"0x1"`, "bare": "0x1"} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("ETag", tag)
				w.WriteHeader(http.StatusCreated)
			})
			s.Instead("read", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("ETag", tag)
				w.Write(backends.Encode("a", record))
			})
			b := made(New(t.Context(), s.client(t), nil))
			if r, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrMisconfigured) {
				t.Errorf("Load: got %+v and error %v, want ErrMisconfigured", r, err)
			}
			if r, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrMisconfigured) {
				t.Errorf("Swap: got %+v and error %v, want ErrMisconfigured", r, err)
			}
		})
	}
}

// The secondary region lags behind: it is never asked.
func TestSecondary(t *testing.T) {
	s := newServer(t)
	client, err := container.NewClientWithNoCredential(s.URL+"/"+account+"-secondary/container", nil)
	if err != nil {
		t.Fatal(err)
	}
	u := s.address()
	u.RawQuery += secondary
	_, opening := open(t.Context(), u)
	t.Setenv("AZURE_STORAGE_KEY", "")
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=account;AccountKey=a2V5;BlobEndpoint="+s.URL+"/account-secondary")
	u.RawQuery = ""
	_, named := open(t.Context(), u)
	_, loading := made(New(t.Context(), client, nil)).Load(t.Context(), "a")
	for how, err := range map[string]error{"with an endpoint": opening, "with a connection string": named, "with a client": loading} {
		t.Run(how, func(t *testing.T) {
			if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "primary") {
				t.Errorf("got %v, want ErrMisconfigured", err)
			}
		})
	}
	if n := s.Requests(); len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
	one, err := container.NewClientWithNoCredential("https://account.blob.core.windows.net/x-secondary", nil)
	if err != nil {
		t.Fatal(err)
	}
	if b := made(New(t.Context(), one, nil)); b.secondary || b.Describe().Store != "azureblob://account/x-secondary/elector/" {
		t.Errorf("a container of such a name is %s, %v", b.Describe().Store, b.secondary)
	}
}

func TestSilence(t *testing.T) {
	mute.Calls(t, record, func() (backends.Backend, func(http.HandlerFunc)) {
		s := newServer(t)
		return s.handles(t)["Open"], func(h http.HandlerFunc) {
			s.Instead("read", h)
			s.Instead("write", h)
		}
	})
}

func TestSilenceDropsIdleConnections(t *testing.T) {
	s := newServer(t)
	mute.Idle(t, s.handles(t)["Open"], func(h http.HandlerFunc) { s.Instead("read", h) }, s.read, s.Closed)
}

func TestClose(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	mine := made(New(t.Context(), client, nil))
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
		if n := s.Requests(); len(n) != 0 {
			t.Errorf("requests after Close: %v", n)
		}
	}
	if _, err := made(New(t.Context(), client, &Options{Prefix: "p/"})).Load(t.Context(), "a"); err != nil {
		t.Errorf("Close closed a client that was given to New: %v", err)
	}
}

func TestDescribe(t *testing.T) {
	s := newServer(t)
	for b, want := range map[backends.Backend]string{
		s.handles(t)["Open"]:                                          "azureblob://account/container/elector/?endpoint=" + s.URL + "/account",
		made(New(t.Context(), s.client(t), nil)):                      "azureblob://account/container/elector/",
		made(New(t.Context(), s.client(t), &Options{Prefix: "here"})): "azureblob://account/container/here",
	} {
		d := b.Describe()
		if d.Store != want || d.MinTTL != time.Second || d.MinWriteInterval != 0 || d.PushesRenewals {
			t.Errorf("got %+v, want %s", d, want)
		}
	}
}
