package s3

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A handle for reading alone does not probe, and sends nothing but reads.
func TestReadOnly(t *testing.T) {
	s := newService(t)
	s.Instead("versioning=", refusal(403, "AccessDenied", "Access Denied"))
	s.Instead("lifecycle=", refusal(403, "AccessDenied", "Access Denied"))
	b, err := backends.OpenReadOnly(t.Context(), "s3://bucket?endpoint="+s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := s.Requests(); !maps.Equal(got, map[string]int{".absent": 1}) {
		t.Errorf("opening takes %v", got)
	}
	if found := fakehttp.ReadsAlone(t, b, record); len(found) != 1 || found[0].Fix != "" || !strings.Contains(found[0].Seen, "not probed") {
		t.Errorf("it finds %+v", found)
	}
	if got := s.Requests(); got["write"]+got[".probe"] != 0 {
		t.Errorf("all that it sends: %v", got)
	}
}

func TestReadOnlyRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		absent http.HandlerFunc
		kind   error
		says   string
	}{
		"no bucket": {refusal(404, "NoSuchBucket", "The specified bucket does not exist"), backends.ErrMisconfigured, "there is no bucket bucket, so no election has ever used it"},
		"no right":  {refusal(403, "AccessDenied", "Access Denied"), backends.ErrDenied, "can allow s3:GetObject on arn:aws:s3:::bucket/elector/*"},
	} {
		s := newService(t)
		s.Instead(".absent", c.absent)
		b, err := backends.OpenReadOnly(t.Context(), "s3://bucket?endpoint="+s.URL)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "opening s3://bucket/elector/") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
