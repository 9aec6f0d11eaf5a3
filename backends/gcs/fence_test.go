package gcs

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cloud.google.com/go/storage"

	"github.com/elector-go/elector/backends"
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

func metadata(token, election string) map[string]any {
	return map[string]any{"metadata": map[string]any{tokenMetadata: token, electionMetadata: election}}
}

func TestFence(t *testing.T) {
	ended := errors.New("the lease is over")
	for name, c := range map[string]struct {
		lease lease
		old   map[string]any // nil for no object
		want  error
	}{
		"no object":           {lease{token: 7}, nil, nil},
		"no token":            {lease{token: 7}, map[string]any{}, nil},
		"a lower token":       {lease{token: 7}, metadata("6", "a"), nil},
		"the same token":      {lease{token: 7}, metadata("7", "a"), nil},
		"a higher token":      {lease{token: 7}, metadata("8", "a"), backends.ErrStale},
		"a longer token":      {lease{token: 7}, metadata("10", "a"), backends.ErrStale},
		"another election":    {lease{token: 7}, metadata("6", "b"), backends.ErrMisconfigured},
		"a malformed token":   {lease{token: 7}, metadata("six", "a"), backends.ErrMisconfigured},
		"no number at all":    {lease{token: 7}, metadata("", "a"), backends.ErrMisconfigured},
		"a lease that's over": {lease{token: 7, over: ended}, metadata("6", "a"), ended},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			if c.old != nil {
				s.set("x", object{content: []byte("old"), metadata: c.old})
			}
			err := Write(t.Context(), s.client(t).Bucket("bucket").Object("x"), c.lease, []byte("new"), nil)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			sent, o := fmt.Sprint(s.Requests()), s.objects["x"]
			switch {
			case c.want == ended && sent != "map[]", c.want != nil && c.want != ended && sent != "map[read:1]", c.want == nil && sent != "map[read:1 write:1]":
				t.Errorf("the requests were %s", sent)
			case c.want == nil && (string(o.content) != "new" || fmt.Sprint(o.metadata["metadata"]) != "map[elector-election:a elector-token:7]"):
				t.Errorf("the object is %q with %v", o.content, o.metadata)
			}
		})
	}
}

// What another process writes between the two requests of a Write is seen, and so
// is what Write has written itself if the answer is lost.
func TestFenceInBetween(t *testing.T) {
	for name, c := range map[string]struct {
		between func(s *service)
		want    error
		tries   int
	}{
		"a later leader":       {func(s *service) { s.set("x", object{metadata: metadata("8", "a")}) }, backends.ErrStale, 1},
		"an earlier leader":    {func(s *service) { s.set("x", object{metadata: metadata("6", "a")}) }, nil, 2},
		"the object's removal": {func(s *service) { s.mutex.Lock(); defer s.mutex.Unlock(); delete(s.objects, "x") }, nil, 2},
		"a lost answer": {func(s *service) {
			s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
				s.Instead("write", nil)
				s.write(httptest.NewRecorder(), r)
				refuse(w, 503, "backendError", "")
			})
		}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			s.set("x", object{metadata: metadata("5", "a")})
			tries := 0
			given := map[string]string{"mine": "1"}
			err := Write(t.Context(), s.client(t).Bucket("bucket").Object("x"), lease{token: 7}, []byte("new"), func(w *storage.Writer) {
				w.ContentType, w.Metadata = "text/x-mine", given
				if tries++; tries == 1 {
					c.between(s)
				}
			})
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || tries != c.tries {
				t.Fatalf("got %v in %d tries, want %v in %d", err, tries, c.want, c.tries)
			}
			o := s.objects["x"]
			if stale := string(o.content) != "new"; stale != (c.want != nil) || !stale && (o.metadata["contentType"] != "text/x-mine" || fmt.Sprint(o.metadata["metadata"]) != "map[elector-election:a elector-token:7 mine:1]") {
				t.Errorf("the object is %q with %v", o.content, o.metadata)
			}
			if len(given) != 1 {
				t.Error("Write has changed the caller's metadata")
			}
		})
	}
}

// A refusal that no other write explains ends a Write.
func TestFenceForbidden(t *testing.T) {
	s := newService(t)
	s.Instead("write", refusal(http.StatusPreconditionFailed, "orgPolicy", "Constraint violated"))
	err := Write(t.Context(), s.client(t).Bucket("bucket").Object("x"), lease{token: 7}, nil, nil)
	if code(err) != http.StatusPreconditionFailed || s.Requests()["write"] != 1 {
		t.Errorf("got %v", err)
	}
}

func TestClaim(t *testing.T) {
	s := newService(t)
	x := s.client(t).Bucket("bucket").Object("x")
	if _, err := Claim(t.Context(), x, lease{token: 7}); !errors.Is(err, storage.ErrObjectNotExist) {
		t.Errorf("no object: got %v", err)
	}
	kept := map[string]any{"contentType": "text/x-mine", "contentLanguage": "de", "contentDisposition": "inline", "cacheControl": "no-store", "storageClass": "NEARLINE",
		"customTime": "2020-01-01T00:00:00Z", "kmsKeyName": "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/7"}
	old := maps.Clone(kept)
	old["metadata"] = map[string]any{"mine": "1"}
	s.set("x", object{content: []byte("content"), metadata: old})
	content, err := Claim(t.Context(), x, lease{token: 7})
	if err != nil || string(content) != "content" {
		t.Fatalf("got %q, %v", content, err)
	}
	o := s.objects["x"]
	for key, value := range kept {
		if o.metadata[key] != value {
			t.Errorf("%s was %v and is %v", key, value, o.metadata[key])
		}
	}
	if string(o.content) != "content" || fmt.Sprint(o.metadata["metadata"]) != "map[elector-election:a elector-token:7 mine:1]" {
		t.Errorf("the object is %q with %v", o.content, o.metadata)
	}
	if err := Write(t.Context(), x, lease{token: 6}, nil, nil); !errors.Is(err, backends.ErrStale) || !strings.Contains(err.Error(), "gs://bucket/x") {
		t.Errorf("an earlier leader after a claim: %v", err)
	}
}
