package azureblob

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fakehttp"
	"github.com/elector-go/elector/internal/fuzz/check"
	"github.com/elector-go/elector/internal/mute"
)

func TestOpen(t *testing.T) {
	denied := refusalOf(403, "AuthorizationPermissionMismatch", "This request is not authorized to perform this operation using this permission.")
	for _, test := range []struct {
		what            string
		header          string // of the container
		container, read http.HandlerFunc
		want            error
		says            string
	}{
		{what: "well"},
		{what: "properties that may not be read", container: refusalOf(403, "AuthorizationFailure", "no")},
		{what: "an immutable container", header: "x-ms-has-immutability-policy", want: backends.ErrMisconfigured, says: "az storage container immutability-policy delete"},
		{what: "a legal hold", header: "x-ms-has-legal-hold", want: backends.ErrMisconfigured, says: "az storage container legal-hold clear"},
		{what: "no container", container: refusalOf(404, "ContainerNotFound", "The specified container does not exist."),
			want: backends.ErrMisconfigured, says: "az storage container create --account-name account --name container"},
		{what: "a container on its way out", container: refusalOf(409, "ContainerBeingDeleted", "The specified container is being deleted."), want: backends.ErrUnavailable, says: "create it again"},
		{what: "a wrong key", container: refusalOf(403, "AuthenticationFailed", "Server failed to authenticate the request."), read: refusalOf(403, "AuthenticationFailed", "Server failed to authenticate the request."),
			want: backends.ErrDenied, says: "key"},
		{what: "nothing permitted", container: denied, read: denied, want: backends.ErrDenied, says: "az role assignment create"},
		{what: "a firewall", container: refusalOf(403, "AuthorizationFailure", "no"), read: refusalOf(403, "AuthorizationFailure", "no"), want: backends.ErrDenied, says: "firewall"},
		{what: "an overloaded service", container: refusalOf(503, "ServerBusy", "busy"), want: backends.ErrUnavailable, says: "try later"},
		{what: "another service", read: func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("Welcome to nginx!")) },
			want: backends.ErrMisconfigured, says: "not Blob Storage"},
	} {
		t.Run(test.what, func(t *testing.T) {
			s := newServer(t)
			if test.header != "" {
				s.header.Set(test.header, "true")
			}
			s.Instead("container", test.container)
			s.Instead("read", test.read)
			b, err := s.open(t.Context())
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "azureblob://account/container/elector/") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("the error does not say %q and which store, in a line: %v", test.says, err)
			}
			for what, n := range s.Requests() {
				if n != 1 {
					t.Errorf("%d requests to %s", n, what)
				}
			}
		})
	}
}

// What a write may be refused with: all but another state of the blob is an error
// that says what to do, in one line.
func TestRefusedWrites(t *testing.T) {
	s := newServer(t)
	for how, b := range s.handles(t) {
		for name, test := range map[string]struct {
			status        int
			code, message string
			want          error
			says          string
		}{
			"another state":           {412, "ConditionNotMet", "The condition specified using HTTP conditional header(s) is not met.", backends.ErrConflict, ""},
			"a blob that is there":    {409, "BlobAlreadyExists", "The specified blob already exists.", backends.ErrConflict, ""},
			"a blob that is gone":     {404, "BlobNotFound", "The specified blob does not exist.", backends.ErrConflict, ""},
			"a lease":                 {412, "LeaseIdMissing", "There is currently a lease on the blob and no lease ID was specified in the request.", backends.ErrReadOnly, "az storage blob lease break"},
			"an immutable blob":       {409, "BlobImmutableDueToPolicy", "This operation is not permitted as the blob is immutable due to a policy.", backends.ErrMisconfigured, "immutability-policy delete"},
			"an archived blob":        {409, "BlobArchived", "This operation is not permitted on an archived blob.", backends.ErrMisconfigured, "archived"},
			"a blob of another type":  {409, "InvalidBlobType", "The blob type is invalid for this operation.", backends.ErrMisconfigured, "no block blob"},
			"no container":            {404, "ContainerNotFound", "The specified container does not exist.", backends.ErrMisconfigured, "az storage container create"},
			"no permission":           {403, "AuthorizationPermissionMismatch", "no", backends.ErrDenied, "Storage Blob Data Contributor"},
			"an expired signature":    {403, "AuthenticationFailed", "no", backends.ErrDenied, "expired"},
			"no keys":                 {403, "KeyBasedAuthenticationNotPermitted", "no", backends.ErrDenied, "permits"},
			"a 412 of another kind":   {412, "SourceConditionNotMet", "no", backends.ErrUnavailable, "network"},
			"a 409 of another kind":   {409, "PendingCopyOperation", "no", backends.ErrUnavailable, "network"},
			"a 412 without a code":    {412, "", "no", backends.ErrUnavailable, "network"},
			"a 403 without a code":    {403, "", "no", backends.ErrDenied, "proxy"},
			"too many requests":       {503, "ServerBusy", "busy", backends.ErrUnavailable, "try later"},
			"something new and wrong": {507, "New", "new", backends.ErrUnavailable, "network"},
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				s.Instead("write", refusalOf(test.status, test.code, test.message))
				_, err := b.Swap(t.Context(), "a", backends.Record{Version: `"0x17"`}, record)
				if !errors.Is(err, test.want) || test.want != backends.ErrConflict && errors.Is(err, backends.ErrConflict) {
					t.Fatalf("got %v, want %v", err, test.want)
				}
				if test.want == backends.ErrConflict {
					return
				}
				for _, part := range []string{test.says, test.code, test.message, "election a", "request 7"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the error does not say %q: %v", part, err)
					}
				}
				if strings.Contains(err.Error(), "\n") || backends.Permanent(err) != (test.want == backends.ErrMisconfigured || test.want == backends.ErrDenied) {
					t.Errorf("it has several lines, or trying again is judged wrongly: %v", err)
				}
			})
		}
	}
}

// Opening ends with its context, whatever hangs.
func TestOpenDeadline(t *testing.T) {
	s := newServer(t)
	s.Instead("container", mute.Handler)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.open(ctx); !errors.Is(err, backends.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want ErrUnavailable and DeadlineExceeded", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.open(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
}

func TestOpenNowhere(t *testing.T) {
	t.Setenv("AZURE_STORAGE_KEY", "a2V5")
	s := httptest.NewServer(nil)
	s.Close()
	u := &url.URL{Scheme: "azureblob", Host: account, Path: "/container", RawQuery: "endpoint=" + s.URL}
	if _, err := open(t.Context(), u); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	defer secured.Close()
	u.RawQuery = "endpoint=" + secured.URL
	if _, err := open(t.Context(), u); !errors.Is(err, backends.ErrMisconfigured) {
		t.Errorf("a certificate that is not trusted: got %v, want ErrMisconfigured", err)
	}
}

func TestParse(t *testing.T) {
	for s, want := range map[string]config{
		"azureblob://account/container":                                                                     {"account", "container", "elector/", "", false},
		"azureblob://account/container?readonly=true":                                                       {"account", "container", "elector/", "", true},
		"azureblob://account/container/":                                                                    {"account", "container", "elector/", "", false},
		"azureblob://acc0unt/my-container/a/b%20c/":                                                         {"acc0unt", "my-container", "a/b c/", "", false},
		"azureblob://account/container?endpoint=https://account.blob.core.chinacloudapi.cn/":                {"account", "container", "elector/", "https://account.blob.core.chinacloudapi.cn", false},
		"azureblob://devstoreaccount1/container/a?endpoint=http://127.0.0.1:10000/devstoreaccount1":         {"devstoreaccount1", "container", "a/", "http://127.0.0.1:10000/devstoreaccount1", false},
		"azureblob://devstoreaccount1/con?endpoint=http%3A%2F%2F127.0.0.1%3A10000%2Fdevstoreaccount1%2F%2F": {"devstoreaccount1", "con", "elector/", "http://127.0.0.1:10000/devstoreaccount1", false},
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(u); err != nil || got != want {
			t.Errorf("%s: got %+v and error %v, want %+v", s, got, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"azureblob:account",
		"azureblob://",
		"azureblob:///container",
		"azureblob://account",
		"azureblob://account/",
		"azureblob://Account/container",
		"azureblob://account.blob.core.windows.net/container",
		"azureblob://account-secondary/container",
		"azureblob://account:443/container",
		"azureblob://account/Container",
		"azureblob://account/-container",
		"azureblob://account/my--container",
		"azureblob://account/co",
		"azureblob://account/$root",
		"azureblob://hunter2@account/container",
		"azureblob://account:hunter2@account/container",
		"azureblob://account:1/hunter2@container",
		"azureblob://account:1?hunter2@container",
		"azureblob://account/container#a",
		"azureblob://account/container/a//b",
		"azureblob://account/container/a/../b",
		"azureblob://account/container/a./b",
		"azureblob://account/container/a%5Cb",
		"azureblob://account/container/a%00",
		"azureblob://account/container/%FF",
		"azureblob://account/container/" + strings.Repeat("a", 900),
		"azureblob://account/container?key=hunter2",
		"azureblob://account/container?readonly=perhaps",
		"azureblob://account/container?sv=2023-11-03&sig=hunter2",
		"azureblob://account/container?endpoint=a&endpoint=b",
		"azureblob://account/container?endpoint=127.0.0.1:1",
		"azureblob://account/container?endpoint=ftp://h",
		"azureblob://account/container?endpoint=http://",
		"azureblob://account/container?endpoint=http://h%3Fsig=hunter2",
		"azureblob://account/container?endpoint=http://user:hunter2@h",
		"azureblob://account/container?endpoint=http://user:hunter2%40h",
	} {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parse(u)
		if !errors.Is(err, backends.ErrURL) {
			t.Errorf("%s: got %v, want ErrURL", s, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows a secret: %v", s, err)
		}
	}
}

// The credentials come from the environment, and no error shows them.
func TestCredentials(t *testing.T) {
	const signature, key = "hunter2%2Bsignature", "aHVudGVyMi1rZXk="
	for name, test := range map[string]struct {
		sas, key, connection string
		endpoint             bool
		want                 error
		sent                 string // as a part of the request's authorization or query
	}{
		"a key":                  {key: key, endpoint: true, sent: "SharedKey account:"},
		"a signature":            {sas: "sv=2023-11-03&sig=" + signature, endpoint: true, sent: "sig=" + signature},
		"with a question mark":   {sas: "?sv=2023-11-03&sig=" + signature, key: "x", endpoint: true, sent: "sig=" + signature},
		"a connection":           {connection: "AccountName=account;AccountKey=" + key + ";BlobEndpoint=SERVER", sent: "SharedKey account:"},
		"a connection, signed":   {connection: "SharedAccessSignature=sv=2023-11-03&sig=" + signature + ";BlobEndpoint=SERVER", sent: "sig=" + signature},
		"two endpoints":          {connection: "AccountName=account;AccountKey=" + key + ";BlobEndpoint=SERVER", endpoint: true, want: backends.ErrDenied},
		"another account":        {connection: "AccountName=other;AccountKey=" + key + ";BlobEndpoint=SERVER", want: backends.ErrDenied},
		"no connection string":   {connection: "hunter2", want: backends.ErrDenied},
		"a key that is none":     {key: "hunter2!", endpoint: true, want: backends.ErrDenied},
		"a signature as a token": {sas: "hunter2", endpoint: true, want: backends.ErrDenied},
		"none":                   {endpoint: true, want: backends.ErrDenied},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			t.Setenv("AZURE_STORAGE_SAS_TOKEN", test.sas)
			t.Setenv("AZURE_STORAGE_KEY", test.key)
			t.Setenv("AZURE_STORAGE_CONNECTION_STRING", strings.ReplaceAll(test.connection, "SERVER", s.URL+"/account"))
			s.Instead("read", func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Authorization") + r.URL.RawQuery; !strings.Contains(got, test.sent) {
					t.Errorf("the request has %q, not %q", got, test.sent)
				}
				s.read(w, r)
			})
			u := s.address()
			if !test.endpoint {
				u.RawQuery = ""
			}
			b, err := open(t.Context(), u)
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			errs := []error{err}
			if err == nil {
				s.Instead("write", fakehttp.Reset)
				_, cut := b.Swap(t.Context(), "a", backends.Record{}, record)
				s.Instead("write", refusalOf(403, "AuthenticationFailed", "no"))
				_, refused := b.Swap(t.Context(), "a", backends.Record{}, record)
				errs = append(errs, cut, refused)
				b.Close()
			} else if !strings.Contains(err.Error(), "AZURE_STORAGE_") {
				t.Errorf("it does not say what to set: %v", err)
			}
			for _, err := range errs {
				for err != nil { // with what it wraps, all but the service's own answer
					if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), key) {
						t.Errorf("the error shows a secret: %v", err)
					}
					err = errors.Unwrap(err)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Prefix: "a//b/"}))
	check.NotMade[*Backend](t, "Prefix")(New(t.Context(), client, &Options{Prefix: "a./"}))
	check.OnlyReads(t, made(New(t.Context(), client, &Options{ReadOnly: true})))
	if n := s.Requests(); len(n) > 0 {
		t.Errorf("it was asked: %v", n)
	}
}
