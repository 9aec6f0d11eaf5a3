package azureblob

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
)

// A handle for reading alone sends nothing but reads, and needs no right to see
// settings of the container or the account.
func TestReadOnly(t *testing.T) {
	s := newServer(t)
	denied := refusalOf(403, "AuthorizationPermissionMismatch", "no")
	s.Instead("container", denied)
	s.Instead("service", denied)
	s.Instead("list", answerXML(`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs></Blobs></EnumerationResults>`))
	b, err := backends.OpenReadOnly(t.Context(), s.address().String())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := s.Requests(); !maps.Equal(got, map[string]int{"read": 1}) {
		t.Errorf("opening takes %v", got)
	}
	for _, f := range fakehttp.ReadsAlone(t, b, record) {
		if f.Fix != "" || !strings.Contains(f.Seen, "not shown") {
			t.Errorf("it finds %+v", f)
		}
	}
	if got := s.Requests(); got["write"] != 0 {
		t.Errorf("all that it sends: %v", got)
	}
}

// What keeps a leader from renewing is no reason not to read.
func TestReadOnlyRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		header string
		read   http.HandlerFunc
		kind   error
		says   string
	}{
		"no container":           {read: refusalOf(404, "ContainerNotFound", "The specified container does not exist."), kind: backends.ErrMisconfigured, says: "there is no container container in the account account, so no election has ever used it"},
		"no right":               {read: refusalOf(403, "AuthorizationPermissionMismatch", "no"), kind: backends.ErrDenied, says: "Storage Blob Data Reader"},
		"an immutable container": {header: "x-ms-has-immutability-policy"},
	} {
		s := newServer(t)
		if c.header != "" {
			s.header.Set(c.header, "true")
		}
		s.Instead("read", c.read)
		b, err := backends.OpenReadOnly(t.Context(), s.address().String())
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, c.kind) || err != nil && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "opening azureblob://account/container/elector/")) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
