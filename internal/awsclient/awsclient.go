// Package awsclient has what the backends on Amazon's stores have in common: the
// settings of the AWS SDK, its credentials and its errors.
package awsclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"

	"github.com/elector-go/elector/backends"
)

// MostConnections bounds the connections of a handle with many elections.
const MostConnections = 64

// Unreachable is the advice about a store that does not answer.
const Unreachable = "check region, endpoint and credentials, and that the network leads there"

// Load returns the settings of a client, and what closes its idle connections. The
// fallback is the region if none is named.
func Load(ctx context.Context, region, fallback string) (c aws.Config, idle func(), err error) {
	// The client that fetches credentials is never closed, so it keeps no
	// connection.
	fetching := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.DisableKeepAlives = true })
	settings := []func(*config.LoadOptions) error{
		config.WithLogger(logging.Nop{}), // by default it writes to standard error
		config.WithHTTPClient(fetching),
		config.WithEndpointCredentialOptions(func(o *endpointcreds.Options) { o.HTTPClient = fetching }), // otherwise it uses its own
	}
	if region != "" {
		settings = append(settings, config.WithRegion(region))
	}
	c, err = config.LoadDefaultConfig(ctx, settings...)
	if err != nil {
		return c, nil, fmt.Errorf("%w: the AWS SDK's settings cannot be used; look into the AWS_ variables and the files in ~/.aws: %w", backends.ErrMisconfigured, err)
	}
	if c.Region == "" {
		c.Region = fallback
	}
	if c.Region == "" {
		return c, nil, fmt.Errorf("%w: no region is named; add region=eu-central-1, say, to the URL or set AWS_REGION", backends.ErrURL)
	}
	t := transport()
	if loaded, ok := c.HTTPClient.(*awshttp.BuildableClient); ok { // with AWS_CA_BUNDLE, if there is one
		t.TLSClientConfig.RootCAs = loaded.GetTransport().TLSClientConfig.RootCAs
	}
	c.HTTPClient = &http.Client{Transport: sender{t}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, t.CloseIdleConnections, nil
}

// transport returns the SDK's with bounds, and without HTTP/2, where one dead
// connection blocks every request.
func transport() *http.Transport {
	t := awshttp.NewBuildableClient().GetTransport()
	t.ForceAttemptHTTP2 = false
	// A dial goes on after its request was given up, and counts as a connection.
	t.DialContext = (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext
	t.MaxConnsPerHost, t.MaxIdleConnsPerHost = MostConnections, MostConnections
	return t
}

// A sender keeps the SDK from closing a request's body when the answer begins.
// If the transport has not read the whole body by then, it sees a failure and
// closes the connection, with the rest of a long answer.
type sender struct{ transport *http.Transport }

func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		content, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			return nil, err
		}
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(content))
	}
	return s.transport.RoundTrip(r)
}

// SignIn makes sure that there are credentials. Later on, credentials that
// cannot be fetched may come back.
func SignIn(ctx context.Context, credentials aws.CredentialsProvider, base *backends.Base) error {
	const doing = "fetching AWS credentials"
	if credentials == nil {
		return fmt.Errorf("%s: %w: the client has none", doing, backends.ErrDenied)
	}
	_, err := credentials.Retrieve(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return base.Explain(ctx, doing, FirstLine(err))
	}
	return fmt.Errorf("%s: %w: none were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give the machine or container a role: %w", doing, backends.ErrDenied, FirstLine(err))
}

// Code returns the service's code of err, or "" if err is not its answer.
func Code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// Failed prepares an error of the SDK for the [backends.Base].
func Failed(ctx context.Context, credentials aws.CredentialsProvider, err error) error {
	switch Code(err) {
	case "ExpiredTokenException", "ExpiredToken":
		if c, failed := credentials.Retrieve(ctx); failed == nil && !c.CanExpire { // the SDK can fetch no others
			return fmt.Errorf("%w: the session token has expired and cannot be renewed from here: start again with new credentials, or give the machine or container a role: %w", backends.ErrDenied, FirstLine(err))
		}
	}
	return FirstLine(err)
}

// FirstLine returns an error that shows the first line of err. The services answer a
// wrong signature with the whole request over several lines, session token included.
func FirstLine(err error) error { return firstLine{err} }

type firstLine struct{ error }

func (e firstLine) Error() string { line, _, _ := strings.Cut(e.error.Error(), "\n"); return line }
func (e firstLine) Unwrap() error { return e.error }
