package azureblob

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

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

func marks(token, election string) map[string]string {
	return map[string]string{tokenMetadata: token, electionMetadata: election}
}

func TestFence(t *testing.T) {
	ended := errors.New("the lease is over")
	for name, c := range map[string]struct {
		lease lease
		old   map[string]string // nil for no blob
		want  error
	}{
		"no blob":             {lease{token: 7}, nil, nil},
		"no token":            {lease{token: 7}, map[string]string{}, nil},
		"a lower token":       {lease{token: 7}, marks("6", "a"), nil},
		"the same token":      {lease{token: 7}, marks("7", "a"), nil},
		"a higher token":      {lease{token: 7}, marks("8", "a"), backends.ErrStale},
		"a longer token":      {lease{token: 7}, marks("10", "a"), backends.ErrStale},
		"another election":    {lease{token: 7}, marks("6", "b"), backends.ErrMisconfigured},
		"a malformed token":   {lease{token: 7}, marks("six", "a"), backends.ErrMisconfigured},
		"no number at all":    {lease{token: 7}, marks("", "a"), backends.ErrMisconfigured},
		"a lease that's over": {lease{token: 7, over: ended}, marks("6", "a"), ended},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			if c.old != nil {
				s.set("x", object{content: []byte("old"), metadata: c.old})
			}
			err := Write(t.Context(), s.client(t).NewBlockBlobClient("x"), c.lease, []byte("new"), nil)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			sent, o := fmt.Sprint(s.Requests()), s.blobs["x"]
			switch {
			case c.want == ended && sent != "map[]", c.want != nil && c.want != ended && sent != "map[properties:1]", c.want == nil && sent != "map[properties:1 write:1]":
				t.Errorf("the requests were %s", sent)
			case c.want == nil && (string(o.content) != "new" || fmt.Sprint(o.metadata) != "map[elector_election:a elector_token:7]"):
				t.Errorf("the blob is %q with %v", o.content, o.metadata)
			}
		})
	}
}

// What another process writes between the two requests of a Write is seen, and so
// is what Write has written itself if the answer is lost.
func TestFenceInBetween(t *testing.T) {
	for name, c := range map[string]struct {
		between func(s *server)
		want    error
		tries   int
	}{
		"a later leader":     {func(s *server) { s.set("x", object{metadata: marks("8", "a")}) }, backends.ErrStale, 1},
		"an earlier leader":  {func(s *server) { s.set("x", object{metadata: marks("6", "a")}) }, nil, 2},
		"the blob's removal": {func(s *server) { s.mutex.Lock(); defer s.mutex.Unlock(); delete(s.blobs, "x") }, nil, 2},
		// The client repeats it by itself, and finds its own first try.
		"a lost answer": {func(s *server) {
			s.Instead("write", func(w http.ResponseWriter, r *http.Request) {
				s.Instead("write", nil)
				s.write(httptest.NewRecorder(), r)
				refuse(w, 503, "ServerBusy", "")
			})
		}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			s.set("x", object{metadata: marks("5", "a")})
			s.Instead("properties", func(w http.ResponseWriter, r *http.Request) {
				s.read(w, r)
				s.Instead("properties", nil)
				c.between(s)
			})
			kind, one := "text/x-mine", "1"
			given := map[string]*string{"mine": &one, "Elector_Token": &one}
			err := Write(t.Context(), s.client(t).NewBlockBlobClient("x"), lease{token: 7}, []byte("new"), &blockblob.UploadOptions{
				HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &kind}, Metadata: given})
			if tries := s.Requests()["write"]; !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || tries != c.tries {
				t.Fatalf("got %v in %d tries, want %v in %d", err, tries, c.want, c.tries)
			}
			o := s.blobs["x"]
			if stale := string(o.content) != "new"; stale != (c.want != nil) || !stale && (o.header.Get("x-ms-blob-content-type") != kind || fmt.Sprint(o.metadata) != "map[elector_election:a elector_token:7 mine:1]") {
				t.Errorf("the blob is %q with %v", o.content, o.metadata)
			}
			if len(given) != 2 || *given["Elector_Token"] != "1" {
				t.Error("Write has changed the caller's metadata")
			}
		})
	}
}

// A refusal that no other write explains ends a Write, in one line.
func TestFenceForbidden(t *testing.T) {
	for _, refused := range []bloberror.Code{bloberror.ConditionNotMet, bloberror.LeaseIDMissing, bloberror.BlobImmutableDueToPolicy} {
		s := newServer(t)
		s.Instead("write", refusalOf(412, string(refused), "no"))
		err := Write(t.Context(), s.client(t).NewBlockBlobClient("x"), lease{token: 7}, nil, nil)
		if !bloberror.HasCode(err, refused) || s.Requests()["write"] != 1 || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v", err)
		}
	}
}

// A Write under the caller's own lease of Azure sends its id.
func TestFenceLeased(t *testing.T) {
	s := newServer(t)
	id := "mine"
	err := Write(t.Context(), s.client(t).NewBlockBlobClient("x"), lease{token: 7}, nil, &blockblob.UploadOptions{
		AccessConditions: &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: &id}, ModifiedAccessConditions: unchanged(`"0x99"`)}})
	if o := s.blobs["x"]; err != nil || o.header.Get("x-ms-lease-id") != id || o.header.Get("If-Match") != "" {
		t.Errorf("sent %v, error %v", o.header, err)
	}
}

func TestClaim(t *testing.T) {
	s := newServer(t)
	x := s.client(t).NewBlockBlobClient("x")
	if _, err := Claim(t.Context(), x, lease{token: 7}); !bloberror.HasCode(err, bloberror.BlobNotFound) {
		t.Errorf("no blob: got %v", err)
	}
	s.Requests()
	s.set("x", object{content: []byte("content"), metadata: map[string]string{"mine": "1", tokenMetadata: "6", electionMetadata: "a"}})
	content, err := Claim(t.Context(), x, lease{token: 7})
	if err != nil || string(content) != "content" {
		t.Fatalf("got %q, %v", content, err)
	}
	if o := s.blobs["x"]; fmt.Sprint(o.metadata) != "map[elector_election:a elector_token:7 mine:1]" {
		t.Errorf("the blob has %v", o.metadata)
	}
	if n := fmt.Sprint(s.Requests()); n != "map[metadata:1 properties:1 read:1]" {
		t.Errorf("the requests were %s", n)
	}
	if err := Write(t.Context(), x, lease{token: 6}, nil, nil); !errors.Is(err, backends.ErrStale) || !strings.Contains(err.Error(), "/container/x") {
		t.Errorf("an earlier leader after a claim: %v", err)
	}
	// What an earlier leader writes before the token is there belongs to what Claim
	// returns, and what a later one writes before it is read ends it.
	s.Instead("metadata", func(w http.ResponseWriter, r *http.Request) {
		s.Instead("metadata", nil)
		s.set("x", object{content: []byte("late"), metadata: marks("6", "a")})
		s.metadata(w, r)
	})
	if content, err := Claim(t.Context(), x, lease{token: 7}); err != nil || string(content) != "late" {
		t.Errorf("got %q, %v", content, err)
	}
	s.Instead("read", func(w http.ResponseWriter, r *http.Request) {
		s.Instead("read", nil)
		s.set("x", object{content: []byte("later"), metadata: marks("8", "a")})
		s.read(w, r)
	})
	if content, err := Claim(t.Context(), x, lease{token: 7}); !errors.Is(err, backends.ErrStale) {
		t.Errorf("got %q, %v, want ErrStale", content, err)
	}
}
