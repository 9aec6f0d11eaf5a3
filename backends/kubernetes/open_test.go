package kubernetes

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/fuzz/check"
)

// settings keep what the machine is set to out of the tests.
func settings(t *testing.T) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBERNETES_SERVICE_PORT", "")
}

func parsed(t *testing.T, s string) (config, error) {
	t.Helper()
	u, err := url.Parse(s)
	must(t, err)
	return parse(u)
}

func TestParse(t *testing.T) {
	f := newFake(t)
	settings(t)
	for s, want := range map[string]config{
		"kubernetes://h:6443/team":                        {store: "kubernetes://h:6443/team", base: "https://h:6443", namespace: "team"},
		"kubernetes://h/team/?ca=" + f.ca:                 {store: "kubernetes://h/team", base: "https://h:443", namespace: "team"},
		"kubernetes://[::1]:1/t-1?tls=true&server_name=x": {store: "kubernetes://[::1]:1/t-1", base: "https://[::1]:1", namespace: "t-1"},
		"kubernetes://h/team?token_file=" + f.tokenFile:   {store: "kubernetes://h/team", base: "https://h:443", namespace: "team", tokenFile: f.tokenFile},
		"kubernetes://h/team?readonly=true":               {store: "kubernetes://h/team", base: "https://h:443", namespace: "team", readOnly: true},
		"kubernetes://127.0.0.1:8001/team?tls=false":      {store: "kubernetes://127.0.0.1:8001/team", base: "http://127.0.0.1:8001", namespace: "team"},
		"kubernetes://h/" + strings.Repeat("a", 63):       {store: "kubernetes://h/" + strings.Repeat("a", 63), base: "https://h:443", namespace: strings.Repeat("a", 63)},
	} {
		got, err := parsed(t, s)
		must(t, err)
		if (got.tls == nil) != strings.HasPrefix(got.base, "http://") || strings.Contains(s, "ca=") && got.tls.VerifyConnection == nil || strings.Contains(s, "server_name") && got.tls.ServerName != "x" {
			t.Errorf("%s: TLS is %+v", s, got.tls)
		}
		if got.tls = nil; got != want {
			t.Errorf("%s: got %+v, want %+v", s, got, want)
		}
	}
}

// In a pod the URL needs no host, and no namespace.
func TestInCluster(t *testing.T) {
	f := newFake(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	account := serviceAccount
	defer func() { serviceAccount = account }()
	serviceAccount = filepath.Dir(f.ca)
	if _, err := parsed(t, "kubernetes:///"); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), "names no namespace") {
		t.Errorf("without the file of the namespace: %v", err)
	}
	f.write(t, filepath.Join(serviceAccount, "namespace"), "team\n")
	for s, namespace := range map[string]string{"kubernetes://": "team", "kubernetes:///": "team", "kubernetes:///other": "other"} {
		c, err := parsed(t, s)
		must(t, err)
		if c.namespace != namespace || c.base != "https://[fd00::1]:443" || c.tokenFile != f.tokenFile || c.tls.VerifyConnection == nil || c.store != "kubernetes:///"+namespace {
			t.Errorf("%s: got %+v", s, c)
		}
	}
	other := filepath.Join(t.TempDir(), "token")
	f.write(t, other, "x")
	if c, err := parsed(t, "kubernetes:///other?token_file="+other); err != nil || c.tokenFile != other {
		t.Errorf("with a token of its own: %+v, %v", c, err)
	}
	must(t, os.Remove(f.tokenFile))
	if _, err := parsed(t, "kubernetes:///other"); !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), "token_file") {
		t.Errorf("without a token: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	f := newFake(t)
	settings(t)
	empty := filepath.Join(t.TempDir(), "empty")
	f.write(t, empty, "\n")
	for s, want := range map[string]string{
		"kubernetes:team":                              "of the form",
		"kubernetes://":                                "does not run in a pod",
		"kubernetes:///team":                           "kubectl proxy",
		"kubernetes://h":                               "not a namespace",
		"kubernetes://h/":                              "not a namespace",
		"kubernetes://h/Team":                          "not a namespace",
		"kubernetes://h/a/b":                           "not a namespace",
		"kubernetes://h/a%2Fb":                         "not a namespace",
		"kubernetes://h/..":                            "not a namespace",
		"kubernetes://h/-a":                            "not a namespace",
		"kubernetes://h/" + strings.Repeat("a", 64):    "not a namespace",
		"kubernetes://h,i/team":                        "one API server",
		"kubernetes://:1/team":                         "host:port",
		"kubernetes://id:hunter2@h/team":               "token_file",
		"kubernetes://id@h/team":                       "token_file",
		"kubernetes://h/team?token=hunter2":            "unknown parameter",
		"kubernetes://h/team?kubeconfig=x":             "unknown parameter",
		"kubernetes://h/team?tls=perhaps":              "neither true nor false",
		"kubernetes://h/team?readonly=perhaps":         "neither true nor false",
		"kubernetes://h/team?tls=false&ca=" + f.ca:     "leave out tls=false",
		"kubernetes://h/team?tls=false&token_file=x":   "leave out tls=false",
		"kubernetes://h/team?ca=/no/such/file":         "parameter ca",
		"kubernetes://h/team?cert=" + f.ca:             "cert and key",
		"kubernetes://h/team?token_file=/no/such/file": "parameter token_file",
		"kubernetes://h/team?token_file=" + empty:      "holds no token",
		"kubernetes://h/team#hunter2":                  "of the form",
		"kubernetes://h/team?ca=a&ca=b":                "2 times",
	} {
		_, err := parsed(t, s)
		if !errors.Is(err, backends.ErrURL) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want ErrURL with %q", s, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error shows the password: %v", s, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	const none = `{"status":{"resourceRules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}}`
	for what, c := range map[string]struct {
		on     string
		answer http.HandlerFunc
		want   error
		advice string
	}{
		"a wrong token":         {"GROUP", refuses(401, "Unauthorized", "Unauthorized", "", ""), backends.ErrDenied, "token_file"},
		"no right":              {"RULES", says(none), backends.ErrDenied, "create role"},
		"a web server":          {"GROUP", http.NotFound, backends.ErrMisconfigured, "not a Kubernetes API server"},
		"another web server":    {"GROUP", says("<html>"), backends.ErrMisconfigured, "not that of a Kubernetes API server"},
		"another API":           {"GROUP", says(`{"kind":"APIResourceList","groupVersion":"apps/v1"}`), backends.ErrMisconfigured, "not that of a Kubernetes API server"},
		"it begins":             {"GROUP", refuses(503, "", "", "", ""), backends.ErrUnavailable, "it may pass"},
		"no answer to the list": {"RULES", reset, backends.ErrUnavailable, "readyz"},
	} {
		t.Run(what, func(t *testing.T) {
			f := newFake(t)
			f.on(c.on, c.answer)
			b, err := open(t.Context(), f.address(""))
			if err == nil {
				b.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.advice) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %v and %q", err, c.want, c.advice)
			}
			for range len(f.opened) {
				wait(t, f.closed)
			}
		})
	}
	for what, answer := range map[string]http.HandlerFunc{
		"rights that cannot be listed": says(`{"status":{"incomplete":true}}`),
		"no right to list rights":      refuses(403, "Forbidden", "", "", ""),
	} {
		f := newFake(t)
		f.on("RULES", answer)
		b, err := open(t.Context(), f.address(""))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		b.Close()
	}
}

func TestTLS(t *testing.T) {
	f := newFake(t)
	f.Config.ErrorLog = log.New(io.Discard, "", 0)
	u := f.address("")
	u.RawQuery = "token_file=" + f.tokenFile
	refused := func(u *url.URL) {
		t.Helper()
		b, err := open(t.Context(), u)
		if err == nil {
			b.Close()
		}
		if !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "TLS") {
			t.Errorf("%s: got %v", u.RawQuery, err)
		}
	}
	refused(u) // an authority that is not trusted
	u.RawQuery = "server_name=other&ca=" + f.ca
	refused(u)
	plain := httptest.NewServer(f.Config.Handler)
	defer plain.Close()
	u = f.address("")
	u.Host = plain.Listener.Addr().String()
	refused(u)
	u.RawQuery = "tls=false"
	b, err := open(t.Context(), u)
	must(t, err)
	defer b.Close()
	if _, err := b.Load(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	if got := f.requests("GET")[0].header.Get("Authorization"); got != "" {
		t.Errorf("a token is sent in clear: %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	check.NotMade[*Backend](t, "client")(New(t.Context(), nil, nil))
	check.NotMade[*Backend](t, "BaseURL")(New(t.Context(), &http.Client{}, nil))
	check.NotMade[*Backend](t, "BaseURL")(New(t.Context(), &http.Client{}, &Options{Namespace: "team"}))
	check.NotMade[*Backend](t, "BaseURL")(New(t.Context(), &http.Client{}, &Options{BaseURL: "http://h secret", Namespace: "team"}))
	check.NotMade[*Backend](t, "BaseURL")(New(t.Context(), &http.Client{}, &Options{BaseURL: "ftp://h", Namespace: "team"}))
	check.NotMade[*Backend](t, "Namespace")(New(t.Context(), &http.Client{}, &Options{BaseURL: "https://h"}))
	check.NotMade[*Backend](t, "Namespace")(New(t.Context(), &http.Client{}, &Options{BaseURL: "https://h", Namespace: "a/b"}))
	check.OnlyReads(t, made(New(t.Context(), &http.Client{}, &Options{BaseURL: "https://h", Namespace: "team", ReadOnly: true})))
}
