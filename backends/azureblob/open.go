package azureblob

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/elector-go/elector/backends"
)

func init() { backends.Register("azureblob", open) }

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

// maxConnections bounds how many requests of one handle are under way.
const maxConnections = 32

// A config is the meaning of a URL.
type config struct {
	account, container, prefix string
	endpoint                   string // of the account, without a slash at its end; empty for Azure's own
	readOnly                   bool
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	c, err := parse(u)
	if err != nil {
		return nil, err
	}
	return c.open(ctx)
}

func (c config) open(ctx context.Context) (backends.Backend, error) {
	store := "azureblob://" + c.account + "/" + c.container + "/" + c.prefix
	if c.endpoint != "" {
		store += "?endpoint=" + c.endpoint
	}
	b := newBackend(store, c.account, c.container, c.prefix)
	b.base.SetReadOnly(c.readOnly)
	life, end := context.WithCancel(context.Background())
	transport := newTransport(life)
	b.closeIdle = transport.CloseIdleConnections
	b.end = end
	err := b.base.Open(ctx, patience, func(ctx context.Context) (err error) {
		if b.service, err = c.client(transport); err != nil {
			return err
		}
		b.container = b.service.NewContainerClient(c.container)
		_, err = call(ctx, b, func(ctx context.Context) (any, error) { return nil, b.check(ctx) })
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// newTransport makes a transport whose requests have a connection each, which
// HTTP/2 would not give them: one that hangs then takes no others with it.
func newTransport(life context.Context) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(_ context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(life, network, address) // net/http does not end it with its request either
		},
		Protocols:           new(http.Protocols),
		TLSHandshakeTimeout: 5 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		MaxConnsPerHost:     maxConnections,
		MaxIdleConnsPerHost: maxConnections,
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// client makes the library's client from the credentials in the environment.
func (c config) client(transport http.RoundTripper) (*service.Client, error) {
	options := &service.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry: policy.RetryOptions{MaxRetries: -1},
		Transport: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // or a write could be sent twice
		},
	}}
	client, err := c.connect(options)
	if err == nil && strings.HasSuffix(accountOf(client.URL()), secondary) {
		err = errSecondary
	}
	return client, err
}

func (c config) connect(options *service.ClientOptions) (*service.Client, error) {
	endpoint := c.endpoint
	if endpoint == "" {
		endpoint = "https://" + c.account + ".blob.core.windows.net"
	}
	if sas := strings.TrimPrefix(os.Getenv("AZURE_STORAGE_SAS_TOKEN"), "?"); sas != "" {
		if values, err := url.ParseQuery(sas); err != nil || !values.Has("sig") {
			return nil, fmt.Errorf("%w: AZURE_STORAGE_SAS_TOKEN is not of the form sv=…&sig=…", errNoCredentials)
		}
		return service.NewClientWithNoCredential(endpoint+"/?"+sas, options)
	}
	if key := os.Getenv("AZURE_STORAGE_KEY"); key != "" {
		credential, err := service.NewSharedKeyCredential(c.account, key)
		if err != nil { // not shown, as it may have a part of the key
			return nil, fmt.Errorf("%w: AZURE_STORAGE_KEY is not in base64", errNoCredentials)
		}
		return service.NewClientWithSharedKeyCredential(endpoint+"/", credential, options)
	}
	text := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	if text == "" {
		return nil, fmt.Errorf("%w: the environment has none", errNoCredentials)
	}
	client, err := service.NewClientFromConnectionString(text, options)
	if err != nil {
		return nil, fmt.Errorf("%w: AZURE_STORAGE_CONNECTION_STRING is not of the form AccountName=…;AccountKey=…", errNoCredentials)
	}
	account := accountOf(client.URL())
	for part := range strings.SplitSeq(text, ";") {
		if name, named := strings.CutPrefix(part, "AccountName="); named {
			account = name
		}
	}
	switch {
	case account != c.account:
		return nil, fmt.Errorf("%w: AZURE_STORAGE_CONNECTION_STRING is of the account %.40q, and the URL names %s", errNoCredentials, account, c.account)
	case c.endpoint != "":
		return nil, fmt.Errorf("%w: AZURE_STORAGE_CONNECTION_STRING has an endpoint itself; remove the parameter endpoint, or set AZURE_STORAGE_KEY", errNoCredentials)
	}
	return client, nil
}

// check makes sure that the container exists and can be used. It does not try to
// overwrite a blob: in an immutable container the trial could not be removed.
func (b *Backend) check(ctx context.Context) error {
	if !b.base.ReadOnly() {
		p, err := b.container.GetProperties(ctx, nil)
		switch {
		case status(err) == http.StatusForbidden: // as with a SAS of the container
		case err != nil:
			return err
		case is(p.HasImmutabilityPolicy), is(p.HasLegalHold):
			return errImmutable
		}
	}
	// No election has this blob, and a user who may read the prefix may read it.
	_, _, err := b.read(ctx, b.prefix+suffix)
	return err
}

func is(flag *bool) bool { return flag != nil && *flag }

var (
	accountName   = regexp.MustCompile(`^[a-z0-9]{3,24}(-secondary)?$`)
	containerName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	plainPath     = regexp.MustCompile(`^[^\x00-\x1f\x7f\\]*$`)
)

// parse reads a URL.
func parse(u *url.URL) (config, error) {
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(u.Path+u.RawQuery, "@") {
		// Not shown: a part that was read as something else may be a password.
		return config{}, fmt.Errorf("%w: it is not of the form azureblob://account/container/prefix; it takes no credentials: they come from AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN", backends.ErrURL)
	}
	refuse := func(format string, args ...any) (config, error) {
		return config{}, fmt.Errorf("%w %s: %s", backends.ErrURL, backends.Redact(u), fmt.Sprintf(format, args...))
	}
	p := backends.NewParameters(u)
	endpoint, readOnly := p.String("endpoint", ""), p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		if u.Query().Has("sig") {
			err = fmt.Errorf("%w: it has a SAS, which does not belong in a URL; put it in AZURE_STORAGE_SAS_TOKEN", backends.ErrURL)
		}
		return config{}, err
	}
	if !accountName.MatchString(u.Host) {
		return refuse("%q is not a valid name of a storage account, which has 3 to 24 lower-case letters and digits; write azureblob://account/container/prefix", u.Host)
	}
	if strings.HasSuffix(u.Host, secondary) {
		return refuse("it names the account's secondary region, which lags behind; write the account without %s", secondary)
	}
	name, path, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if len(name) < 3 || len(name) > 63 || !containerName.MatchString(name) {
		return refuse("%q is not a valid name of a container, which has 3 to 63 lower-case letters, digits and single '-'; write azureblob://account/container/prefix", name)
	}
	c := config{account: u.Host, container: name, prefix: DefaultPrefix, readOnly: readOnly}
	if path != "" {
		c.prefix = path + "/"
	}
	if wrong := wrongPrefix(c.prefix); wrong != "" {
		return refuse("its path %s", wrong)
	}
	if endpoint != "" {
		e, err := url.Parse(endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" {
			return refuse("parameter endpoint is not of the form https://account.blob.SUFFIX, or http://host:port/account for an emulator")
		}
		c.endpoint = e.Scheme + "://" + e.Host + strings.TrimRight(e.EscapedPath(), "/")
	}
	return c, nil
}

// wrongPrefix returns why blobs' names cannot begin with the prefix, "" if they can.
func wrongPrefix(prefix string) string {
	for _, part := range strings.Split(strings.TrimSuffix(prefix, "/"), "/") {
		if part == "" || strings.HasSuffix(part, ".") || !plainPath.MatchString(part) {
			return `has an empty part, one that ends with '.', '\' or control characters`
		}
	}
	if len(prefix)+backends.MaxName+len(suffix) > 1024 || !backends.ValidText(prefix) {
		return "cannot begin the names of blobs: it is too long or not UTF-8"
	}
	return ""
}

const secondary = "-secondary"

// accountOf returns the account that the address of a service names: the path, as
// on an emulator, or the first part of the host.
func accountOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		account, _, _ := strings.Cut(path, "/")
		return account
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return account
}
