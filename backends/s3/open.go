package s3

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

func init() { backends.Register("s3", open) }

// patience bounds opening when the caller set no deadline.
const patience = 10 * time.Second

// Options are the options of New. Bucket is required; of the other fields the zero value
// means the default.
type Options struct {
	// Bucket is the name of the bucket. It has no default.
	Bucket string

	// Prefix is what keys of objects begin with, as it is, before the election's name.
	// The default is DefaultPrefix.
	Prefix string

	// ReadOnly makes a handle that only reads: see [backends.OpenReadOnly].
	ReadOnly bool
}

// New returns a backend in a bucket, on your client, which Close leaves as it is. It
// returns ErrOptions of package backends for a client or options that it cannot use.
//
// New blocks until it has probed the bucket, at most 10 s if ctx has no deadline. It
// returns the errors of a [backends.Opener].
//
// Requests are sent once, whatever the client's retry policy is. The client's HTTP
// client should not use HTTP/2, where one dead connection blocks all requests, and
// must not repeat requests by itself.
func New(ctx context.Context, client *s3.Client, options *Options) (*Backend, error) {
	errOptions := fmt.Errorf("%w of s3.New", backends.ErrOptions)
	if client == nil {
		return nil, fmt.Errorf("%w: the client is nil; make one with s3.NewFromConfig", errOptions)
	}
	if options == nil {
		options = &Options{}
	}
	if wrong := wrongBucket(options.Bucket); wrong != "" {
		return nil, fmt.Errorf("%w: Bucket is %q, %s", errOptions, options.Bucket, wrong)
	}
	prefix := cmp.Or(options.Prefix, DefaultPrefix)
	if wrong := wrongPrefix(prefix); wrong != "" {
		return nil, fmt.Errorf("%w: Prefix %s", errOptions, wrong)
	}
	b := newBackend(client, options.Bucket, prefix, func() {})
	b.base.SetReadOnly(options.ReadOnly)
	return connect(ctx, b)
}

func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	a, err := parse(u)
	if err != nil {
		return nil, err
	}
	client, idle, err := a.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening s3://%s/%s: %w", a.bucket, a.prefix, err)
	}
	b := newBackend(client, a.bucket, a.prefix, idle)
	b.base.SetReadOnly(a.readOnly)
	b, err = connect(ctx, b)
	if err != nil {
		return nil, err // not a nil *Backend in a Backend
	}
	return b, nil
}

// client returns a client, and what closes its idle connections.
func (a address) client(ctx context.Context) (*s3.Client, func(), error) {
	fallback := ""
	if a.endpoint != "" {
		fallback = "us-east-1" // what servers of others sign with
	}
	c, idle, err := awsclient.Load(ctx, a.region, fallback)
	if err != nil {
		return nil, nil, err
	}
	return s3.NewFromConfig(c, func(o *s3.Options) {
		o.UsePathStyle = a.pathStyle
		if a.endpoint != "" {
			o.BaseEndpoint = &a.endpoint
		}
	}), idle, nil
}

// connect makes sure that the bucket can be used.
func connect(ctx context.Context, b *Backend) (*Backend, error) {
	err := b.base.Open(ctx, patience, func(ctx context.Context) error {
		if err := awsclient.SignIn(ctx, b.client.Options().Credentials, b.base); err != nil {
			return err
		}
		// No election has this object, and S3 must report that it does not exist.
		if _, _, err := b.get(ctx, b.prefix+".absent"); err != nil {
			return err
		}
		if b.base.ReadOnly() {
			return nil
		}
		err := b.probe(ctx)
		if c := awsclient.Code(err); c == "AccessDenied" || c == "Forbidden" {
			return nil // observers may not write; the first Swap probes again
		}
		return err
	})
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// An address is the content of a URL.
type address struct {
	bucket, prefix, region, endpoint string
	pathStyle, readOnly              bool
}

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]$`)
	plainPath  = regexp.MustCompile(`^[^\x00-\x1f\x7f]*$`)
)

// wrongBucket returns why the name is not that of a bucket to use, "" if it is.
func wrongBucket(name string) string {
	switch {
	case !bucketName.MatchString(name):
		return "not a valid name of a bucket, which has 3 to 63 lower-case letters, digits, '-' and '.', and no port"
	case strings.HasSuffix(name, "--x-s3"):
		return "a directory bucket, which keeps its objects in one zone; use a general purpose bucket"
	}
	return ""
}

// wrongPrefix returns why keys of objects cannot begin with the prefix, "" if they can.
func wrongPrefix(prefix string) string {
	for _, part := range strings.Split(strings.TrimSuffix(prefix, "/"), "/") {
		if part == "" || part == "." || part == ".." || !plainPath.MatchString(part) {
			return "has an empty part, '.', '..' or control characters"
		}
	}
	if len(prefix)+backends.MaxName > 1024 || !backends.ValidText(prefix) {
		return "cannot begin the keys of objects: it is too long or not UTF-8"
	}
	return ""
}

// parse reads a URL. Its errors show nothing of a URL that may hold a secret.
func parse(u *url.URL) (a address, err error) {
	refuse := func(format string, args ...any) (address, error) {
		return address{}, fmt.Errorf("%w: %s", backends.ErrURL, fmt.Sprintf(format, args...))
	}
	if u.User != nil || u.Opaque != "" || u.Fragment != "" || strings.ContainsAny(u.Path+u.RawQuery, "@") {
		return refuse("it has a user or password (not shown); write s3://bucket/prefix: the AWS SDK finds the credentials in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in a profile (AWS_PROFILE), or by the role of the machine or container")
	}
	p := backends.NewParameters(u)
	a = address{bucket: u.Host, prefix: DefaultPrefix, region: p.String("region", ""), endpoint: p.String("endpoint", "")}
	a.pathStyle, a.readOnly = p.Bool("path_style", a.endpoint != ""), p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return address{}, err
	}
	if wrong := wrongBucket(a.bucket); wrong != "" {
		return refuse("%q is %s; write s3://bucket/prefix, and the address of another server into endpoint=http://host:port", a.bucket, wrong)
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		a.prefix = path + "/"
	}
	if wrong := wrongPrefix(a.prefix); wrong != "" {
		return refuse("its path %s", wrong)
	}
	if a.endpoint != "" {
		e, err := url.Parse(a.endpoint)
		if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || e.User != nil || e.RawQuery != "" || e.Fragment != "" {
			return refuse("endpoint is not of the form http://host:port or https://host, without a user, query or fragment")
		}
	}
	return a, nil
}
