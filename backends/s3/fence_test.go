package s3

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// A lease is one that a paused process believes in, or one that is over.
type lease struct {
	token uint64
	over  error
}

func (l lease) Acquisition() (backends.Acquisition, error) {
	r := record
	r.Token = l.token
	return backends.Acquisition{Election: "a", Record: r}, l.over
}

func fenced(token, election string, content string) object {
	return object{content: []byte(content), header: http.Header{"X-Amz-Meta-Elector-Token": {token}, "X-Amz-Meta-Elector-Election": {election}}}
}

// plain returns what a reader of the object sees, and its token.
func plain(t *testing.T, o object) string {
	t.Helper()
	content, err := decompress(o.header.Get("Content-Encoding"), bytes.NewReader(o.content))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s", content, o.header.Get("X-Amz-Meta-Elector-Token"))
}

func TestFence(t *testing.T) {
	ended := errors.New("the lease is over")
	for name, c := range map[string]struct {
		lease lease
		old   object
		want  error
	}{
		"no object":           {lease{token: 7}, object{}, nil},
		"no token":            {lease{token: 7}, object{content: []byte("old")}, nil},
		"a lower token":       {lease{token: 7}, fenced("6", "a", "old"), nil},
		"the same token":      {lease{token: 7}, fenced("7", "a", "old"), nil},
		"a higher token":      {lease{token: 7}, fenced("8", "a", "old"), backends.ErrStale},
		"a longer token":      {lease{token: 7}, fenced("10", "a", "old"), backends.ErrStale},
		"another election":    {lease{token: 7}, fenced("6", "b", "old"), backends.ErrMisconfigured},
		"a malformed token":   {lease{token: 7}, fenced("six", "a", "old"), backends.ErrMisconfigured},
		"a lease that's over": {lease{token: 7, over: ended}, fenced("6", "a", "old"), ended},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			if c.old.content != nil {
				s.set("x", c.old)
			}
			err := Write(t.Context(), s.client(t), "bucket", "x", c.lease, []byte("new"), nil)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			sent, o := fmt.Sprint(s.Requests()), s.get("x")
			switch {
			case c.want == ended && sent != "map[]", c.want != nil && c.want != ended && sent != "map[head:1]", c.want == nil && sent != "map[head:1 write:1]":
				t.Errorf("the requests were %s", sent)
			case c.want == nil && (plain(t, o) != "new 7" || o.header.Get("X-Amz-Meta-Elector-Election") != "a"):
				t.Errorf("the object is %q with %v", o.content, o.header)
			case c.want != nil && string(o.content) != "old":
				t.Errorf("the object is %q", o.content)
			}
		})
	}
}

// Objects of two leaders have different entity tags, whatever is in them: a condition
// on the tag is a condition on the token.
func TestTokenIsInTheTag(t *testing.T) {
	s := newService(t)
	client := s.client(t)
	tags := map[string]bool{}
	for token := range uint64(3) {
		if err := Write(t.Context(), client, "bucket", "x", lease{token: 7 + token}, []byte("same"), nil); err != nil {
			t.Fatal(err)
		}
		o := s.get("x")
		tags[o.tag()] = true
		z, err := gzip.NewReader(bytes.NewReader(o.content))
		if err != nil || z.Comment != fmt.Sprintf("elector-token=%d", 7+token) {
			t.Errorf("the header has %q, %v", z.Comment, err)
		}
		if content, err := io.ReadAll(z); err != nil || string(content) != "same" {
			t.Errorf("the content is %q, %v", content, err)
		}
	}
	if len(tags) != 3 {
		t.Errorf("the same content under three tokens has %d tags", len(tags))
	}
}

// What another process writes between the two requests of a Write is seen, also if it
// is what was there; and so is what Write has written itself if the answer is lost.
func TestFenceInBetween(t *testing.T) {
	for name, c := range map[string]struct {
		between func(t *testing.T, s *service)
		want    error
		tries   int
	}{
		"a later leader": {func(t *testing.T, s *service) {
			if err := Write(t.Context(), s.client(t), "bucket", "x", lease{token: 8}, []byte("later"), nil); err != nil {
				t.Error(err)
			}
		}, backends.ErrStale, 1},
		"a later leader, with what was there": {func(t *testing.T, s *service) {
			if _, err := Claim(t.Context(), s.client(t), "bucket", "x", lease{token: 8}); err != nil {
				t.Error(err)
			}
		}, backends.ErrStale, 1},
		"an earlier leader":    {func(_ *testing.T, s *service) { s.set("x", fenced("6", "a", "earlier")) }, nil, 2},
		"the object's removal": {func(_ *testing.T, s *service) { s.mutex.Lock(); defer s.mutex.Unlock(); delete(s.objects, "x") }, nil, 2},
		"a write under way": {func(_ *testing.T, s *service) {
			s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
				s.Instead("write", nil)
				refusal(409, "ConditionalRequestConflict", "The conditional request cannot succeed")(w, r)
			})
		}, nil, 2},
		"a lost answer": {func(_ *testing.T, s *service) {
			s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
				s.Instead("write", nil)
				s.write(httptest.NewRecorder(), r)
				refuse(w, 503, "ServiceUnavailable", "")
			})
		}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			if err := Write(t.Context(), s.client(t), "bucket", "x", lease{token: 5}, []byte("old"), nil); err != nil {
				t.Fatal(err)
			}
			tries := 0
			given := map[string]string{"mine": "1"}
			err := Write(t.Context(), s.client(t), "bucket", "x", lease{token: 7}, []byte("newer"), func(in *s3.PutObjectInput) {
				in.ContentType, in.Metadata = aws.String("text/x-mine"), given
				if tries++; tries == 1 {
					c.between(t, s)
				}
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || tries != c.tries {
				t.Fatalf("got %v in %d tries, want %v in %d", err, tries, c.want, c.tries)
			}
			o := s.get("x")
			if stale := plain(t, o) != "newer 7"; stale != (c.want != nil) || !stale && (o.header.Get("Content-Type") != "text/x-mine" || o.header.Get("X-Amz-Meta-Mine") != "1") {
				t.Errorf("the object is %q with %v", o.content, o.header)
			}
			if len(given) != 1 {
				t.Error("Write has changed the caller's metadata")
			}
		})
	}
}

// A refusal that no other write explains ends a Write.
func TestFenceRefused(t *testing.T) {
	s := newService(t)
	s.set("x", object{content: []byte("old")})
	s.Instead("write", refusal(412, "PreconditionFailed", "no"))
	err := Write(t.Context(), s.client(t), "bucket", "x", lease{token: 7}, nil, nil)
	if awsclient.Code(err) != "PreconditionFailed" || s.Requests()["write"] != 1 {
		t.Errorf("got %v", err)
	}
}

func TestClaim(t *testing.T) {
	s := newService(t)
	client := s.client(t)
	if _, err := Claim(t.Context(), client, "bucket", "x", lease{token: 7}); awsclient.Code(err) != noSuchKey {
		t.Errorf("no object: got %v", err)
	}
	kept := http.Header{"Content-Type": {"text/x-mine"}, "Cache-Control": {"no-store"}, "X-Amz-Meta-Mine": {"1"}, "X-Amz-Storage-Class": {"STANDARD_IA"}}
	s.set("x", object{content: []byte("content"), header: kept})
	for _, token := range []uint64{7, 8} { // as it was uploaded, and as Claim writes it
		content, err := Claim(t.Context(), client, "bucket", "x", lease{token: token})
		if err != nil || string(content) != "content" {
			t.Fatalf("got %q, %v", content, err)
		}
		o := s.get("x")
		for key := range kept {
			if o.header.Get(key) != kept.Get(key) {
				t.Errorf("%s was %s and is %s", key, kept.Get(key), o.header.Get(key))
			}
		}
		if plain(t, o) != fmt.Sprintf("content %d", token) {
			t.Errorf("the object is %q with %v", o.content, o.header)
		}
	}
	if err := Write(t.Context(), client, "bucket", "x", lease{token: 7}, nil, nil); !errors.Is(err, backends.ErrStale) || !strings.Contains(err.Error(), "s3://bucket/x") {
		t.Errorf("an earlier leader after a claim: %v", err)
	}
	s.set("x", object{content: []byte("content"), header: http.Header{"Content-Encoding": {"br"}}})
	if _, err := Claim(t.Context(), client, "bucket", "x", lease{token: 7}); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("another encoding: %v", err)
	}
}
