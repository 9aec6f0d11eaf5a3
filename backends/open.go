package backends

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/elector-go/elector/internal/storeurl"
)

// An Opener connects to the store that u names and makes sure that the store can
// serve: that it answers, grants access and is set up as the backend needs it.
// Otherwise it returns ErrUnavailable, ErrDenied, ErrMisconfigured, ErrReadOnly
// or ErrURL, with what to do. It returns when ctx ends.
type Opener func(ctx context.Context, u *url.URL) (Backend, error)

var (
	openersMutex sync.Mutex
	openers      = map[string]Opener{}
)

// bundled names the package beside this one that serves each scheme, for the error
// that names a missing import. Some are modules of their own.
var bundled = map[string]string{
	"memory":     "memory",
	"file":       "file",
	"etcd":       "etcd",
	"etcds":      "etcd",
	"postgres":   "postgres",
	"postgresql": "postgres",
	"zookeeper":  "zookeeper",
	"zookeepers": "zookeeper",
	"dynamodb":   "dynamodb",
	"gs":         "gcs",
	"azureblob":  "azureblob",
	"consul":     "consul",
	"consuls":    "consul",
	"kubernetes": "kubernetes",
	"mysql":      "mysql",
	"mysqls":     "mysql",
	"nats":       "nats",
	"natss":      "nats",
	"redis":      "redis",
	"rediss":     "redis",
	"s3":         "s3",
}

// url.Parse returns schemes in lower case.
var schemeForm = regexp.MustCompile(`^[a-z][a-z0-9+.-]*$`)

// Register makes open serve URLs with the scheme. A backend calls it from its
// init function. It panics if the scheme is registered already or cannot be that
// of a URL (a lower-case letter, then lower-case letters, digits, '+', '-' and
// '.'), or if open is nil.
func Register(scheme string, open Opener) {
	if !schemeForm.MatchString(scheme) {
		panic("backends: no URL has the scheme " + strconv.Quote(scheme))
	}
	if open == nil {
		panic("backends: scheme " + scheme + " is registered without an Opener")
	}
	openersMutex.Lock()
	defer openersMutex.Unlock()
	if _, taken := openers[scheme]; taken {
		panic("backends: scheme " + scheme + " is registered twice")
	}
	openers[scheme] = open
}

// Open connects to the store that rawURL names, through the backend that
// registered its scheme. It blocks until the store has answered or ctx ends.
func Open(ctx context.Context, rawURL string) (Backend, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	return openURL(ctx, u)
}

// OpenFrom is Open for a URL that read returns, with or without the end of a line. If it has a
// user and a password, etcd, MySQL, Redis and NATS read it again when they sign in for a new
// connection, so that the password can be rotated. It must name the same store then.
func OpenFrom(ctx context.Context, read func() (string, error)) (Backend, error) {
	text, err := read()
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", ErrURL, err)
	}
	return Open(storeurl.WithSource(ctx, read), strings.TrimSpace(text))
}

// OpenReadOnly is Open with the parameter readonly=true, which each backend of this
// module takes: the handle needs only the right to read, and creates and writes nothing.
// Its Swaps return ErrReadOnly, and so do campaigns on it. It replaces a readonly=false in
// the URL.
func OpenReadOnly(ctx context.Context, rawURL string) (Backend, error) {
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if q, err := url.ParseQuery(u.RawQuery); err == nil { // an Opener refuses what cannot be parsed
		if only, err := strconv.ParseBool(q.Get("readonly")); !q.Has("readonly") {
			u.RawQuery = strings.TrimPrefix(u.RawQuery+"&readonly=true", "&")
		} else if err == nil && !only {
			q["readonly"][0] = "true"
			u.RawQuery = q.Encode()
		}
	}
	return openURL(ctx, u)
}

func openURL(ctx context.Context, u *url.URL) (Backend, error) {
	openersMutex.Lock()
	open, ok := openers[u.Scheme]
	schemes := make([]string, 0, len(openers))
	for s := range openers {
		schemes = append(schemes, s)
	}
	openersMutex.Unlock()
	if !ok {
		slices.Sort(schemes)
		there := "no backend is imported"
		if len(schemes) > 0 {
			there = "imported are " + strings.Join(schemes, ", ")
		}
		if u.Scheme == "http" || u.Scheme == "https" {
			return nil, fmt.Errorf("%w %q: the scheme names the store: write %s", ErrUnknownScheme, u.Scheme, storeAt(u.Hostname(), u.Port(), u.Scheme == "https"))
		}
		if pkg := bundled[u.Scheme]; pkg != "" {
			return nil, fmt.Errorf("%w %q: %s; add import _ \"github.com/elector-go/elector/backends/%s\"", ErrUnknownScheme, u.Scheme, there, pkg)
		}
		if meant := nearest(u.Scheme, schemes); meant != "" {
			return nil, fmt.Errorf("%w %q: did you mean %s://? (%s)", ErrUnknownScheme, u.Scheme, meant, there)
		}
		return nil, fmt.Errorf("%w %q: %s; import the backend that serves it", ErrUnknownScheme, u.Scheme, there)
	}
	return open(ctx, u)
}

// nearest returns the known scheme that differs from this one by at most two
// typing errors, or "".
func nearest(scheme string, registered []string) string {
	best, most := "", 3
	for _, s := range append(registered, slices.Sorted(maps.Keys(bundled))...) {
		if d := distance(scheme, s); d < most && d < len(s)/2 {
			best, most = s, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace (Levenshtein, 1966).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// parse is url.Parse with errors that never repeat the URL, which may hold a
// password, and with several hosts and ports.
func parse(rawURL string) (*url.URL, error) {
	if rawURL == "" {
		return nil, fmt.Errorf("%w: it is empty; name a store, as in file:///var/lib/myservice", ErrURL)
	}
	if strings.Trim(rawURL, " \t\r\n\"'") != rawURL {
		return nil, fmt.Errorf("%w: it begins or ends with a space or a quotation mark", ErrURL)
	}
	if host, port, found := bareHost(rawURL); found {
		return nil, fmt.Errorf("%w: %s has no scheme, which names the store: write %s", ErrURL, rawURL, storeAt(host, port, false))
	}
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be parsed (not shown, it may hold a password); percent-encode special characters in user, password and path", ErrURL)
	}
	if u.Scheme == "" {
		return nil, fmt.Errorf("%w: it has no scheme; write file:///var/lib/myservice, say", ErrURL)
	}
	return u, nil
}

// hostsForm is that of hosts with ports, which hold no password.
var hostsForm = regexp.MustCompile(`^(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(?:,(?:[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?)*$`)

// bareHost returns the hosts and the last port of a text that is nothing else.
func bareHost(text string) (hosts, port string, found bool) {
	if !hostsForm.MatchString(text) {
		return "", "", false
	}
	i := strings.LastIndexByte(text, ':')
	return text[:i], text[i+1:], true
}

// storeAt returns the URL of the store that usually has the port.
func storeAt(host, port string, secure bool) string {
	s := ""
	if secure {
		s = "s"
	}
	if strings.Contains(host, ":") && !strings.ContainsAny(host, "[,") {
		host = "[" + host + "]"
	}
	at := host
	if port != "" {
		at += ":" + port
	}
	switch port {
	case "2379":
		return "etcd" + s + "://" + at
	case "2181":
		return "zookeeper" + s + "://" + at
	case "8500", "8501":
		return "consul" + s + "://" + at
	case "5432":
		return "postgres://USER@" + at + "/DATABASE"
	case "4222":
		return "nats" + s + "://" + at + "/BUCKET"
	case "6379":
		return "redis" + s + "://" + at
	case "3306":
		return "mysql" + s + "://USER@" + at + "/DATABASE"
	}
	return "etcd" + s + "://" + at + " if that is etcd, or another store's name"
}

// Redact returns the URL without its password, query and fragment. If a password
// with unencoded special characters was parsed as something else, such as a part
// of the path, it returns no more than the scheme.
func Redact(u *url.URL) string {
	if u.Opaque != "" || strings.Contains(u.Path+u.RawQuery+u.Fragment, "@") {
		return u.Scheme + "://(not shown, it may hold a password)"
	}
	v := *u
	v.RawQuery, v.Fragment = "", ""
	if v.Host == "" && v.User == nil && v.Path == "" {
		return v.Scheme + "://" // String leaves the slashes out
	}
	return v.Redacted()
}

// Parameters reads a URL's query. Each method takes one parameter; Done refuses
// those that were not taken, so that a misspelt one is not ignored.
type Parameters struct {
	values url.Values
	taken  []string
	err    error
}

// NewParameters reads the query of u.
func NewParameters(u *url.URL) *Parameters {
	values, err := url.ParseQuery(u.RawQuery)
	switch {
	case strings.Contains(u.RawQuery+u.Fragment, "@"): // a password with an unencoded '?' looks like this
		err = fmt.Errorf("%w: there is an '@' after its '?' or '#' (not shown, it may be a part of a password); percent-encode special characters in user, password and parameters", ErrURL)
	case err != nil:
		err = fmt.Errorf("%w: its query cannot be parsed; percent-encode special characters", ErrURL)
	}
	return &Parameters{values: values, err: err}
}

// String returns the parameter's value, or otherwise if it is missing.
func (p *Parameters) String(key, otherwise string) string {
	p.taken = append(p.taken, key)
	values, ok := p.values[key]
	if !ok {
		return otherwise
	}
	if len(values) > 1 {
		p.fail("parameter %q is given %d times", key, len(values))
	}
	return values[0]
}

// Bool returns the parameter as true or false.
func (p *Parameters) Bool(key string, otherwise bool) bool {
	s := p.String(key, strconv.FormatBool(otherwise))
	v, err := strconv.ParseBool(s)
	if err != nil {
		p.fail("parameter %q is neither true nor false", key)
	}
	return v
}

// Duration returns the parameter as a positive time, as in "1.5s".
func (p *Parameters) Duration(key string, otherwise time.Duration) time.Duration {
	s := p.String(key, otherwise.String())
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 {
		p.fail("parameter %q is not a time like 1.5s", key)
	}
	return v
}

// Done returns ErrURL if a parameter was malformed or not taken.
func (p *Parameters) Done() error {
	if p.err != nil {
		return p.err
	}
	for key := range p.values {
		if !slices.Contains(p.taken, key) {
			slices.Sort(p.taken)
			known := "it takes none"
			if len(p.taken) > 0 {
				known = "it takes " + strings.Join(p.taken, ", ")
			}
			unknown := strconv.Quote(key)
			if p.values.Has("password") || p.values.Has("sslpassword") || p.values.Has("token") {
				unknown = "(not shown, it may be a part of a password with an '&' that must be written %26)"
			}
			return fmt.Errorf("%w: unknown parameter %s; %s", ErrURL, unknown, known)
		}
	}
	return nil
}

func (p *Parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("%w: %s", ErrURL, fmt.Sprintf(format, args...))
	}
}
