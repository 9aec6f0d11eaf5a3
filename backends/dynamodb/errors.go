package dynamodb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/elector-go/elector/backends"
)

var errClosed = fmt.Errorf("%w: the handle is closed", backends.ErrUnavailable)

// unknownOperation is an emulator's: the service knows all that we ask.
const unknownOperation = "UnknownOperationException"

// code returns what the service calls err, or "" if err is not its answer.
func code(err error) string {
	var e smithy.APIError
	if errors.As(err, &e) {
		return e.ErrorCode()
	}
	return ""
}

// explain returns err, which was met while doing something, as one of package
// backends' errors with what to do. It returns nil for nil.
func (b *Backend) explain(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, backends.ErrForeignRecord):
		return fmt.Errorf("%s: %w", doing, err)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if code(err) == "" {
		// The network may have gone dark: the idle connections are dead too,
		// and finding out one call at a time could cost a lease.
		b.idle()
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w: no answer in time; %s: %w: %w", doing, backends.ErrUnavailable, look, ctx.Err(), firstLine{err})
	case b.life.Err() != nil:
		return fmt.Errorf("%s: %w", doing, errClosed)
	}
	advice, kind := b.classify(ctx, err)
	return fmt.Errorf("%s: %w: %s: %w", doing, kind, advice, firstLine{err})
}

// look is what to do about a store that gives no answer.
const look = "see whether region and endpoint are right and the network leads there"

// classify tells what kind of error of package backends err is, and what to do.
// Whatever is not known may pass: the elector tries again and nobody leads on
// a guess.
func (b *Backend) classify(ctx context.Context, err error) (advice string, kind error) {
	switch c := code(err); c {
	case "AccessDeniedException", "AccessDenied":
		return "an administrator can allow dynamodb:GetItem, PutItem, DescribeTable and DescribeTimeToLive on the table, see Permissions in the package's documentation", backends.ErrDenied
	case "UnrecognizedClientException", "InvalidClientTokenId", "MissingAuthenticationTokenException", "MissingAuthenticationToken",
		"IncompleteSignatureException", "IncompleteSignature", "OptInRequired", "SubscriptionRequiredException", "NotAuthorized":
		return "check the credentials (aws sts get-caller-identity), and that they are good for this region and endpoint", backends.ErrDenied
	case "InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed":
		if c != "InvalidSignatureException" || strings.Contains(err.Error(), "Signature expired") || strings.Contains(err.Error(), "Signature not yet current") {
			return "this machine's clock is wrong by minutes: set it right", backends.ErrUnavailable
		}
		return "check the secret access key, and that nothing on the way changes requests", backends.ErrDenied
	case "ExpiredTokenException", "ExpiredToken":
		if b.renewable(ctx) {
			return "the credentials have expired; the AWS SDK fetches new ones", backends.ErrUnavailable
		}
		return "the session token has expired and cannot be renewed from here: start again with new credentials, or give the machine or container a role", backends.ErrDenied
	case "ResourceNotFoundException":
		return "there is no such table in this region and account; create=true in the URL makes it, or an administrator can run: " + b.createCommand(), backends.ErrMisconfigured
	case "ValidationException":
		return "the table is not made as it must be, perhaps replaced while in use: name another table, and make it with: " + b.createCommand(), backends.ErrMisconfigured
	case unknownOperation, "SerializationException":
		return "what answers is not DynamoDB; check the endpoint", backends.ErrMisconfigured
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException":
		return "the service throttles: see the table's capacity, or bill it on demand", backends.ErrUnavailable
	case "":
		if errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) {
			return "TLS with the endpoint failed: check whether it is http or https, and AWS_CA_BUNDLE", backends.ErrMisconfigured
		}
		return look, backends.ErrUnavailable
	}
	return "it may pass", backends.ErrUnavailable
}

// renewable reports whether the AWS SDK can fetch credentials anew.
func (b *Backend) renewable(ctx context.Context) bool {
	c, err := b.client.Options().Credentials.Retrieve(ctx)
	return err != nil || c.CanExpire
}

// firstLine shows the first line of an error. The service answers a wrong
// signature with the whole request over several lines, session token included.
type firstLine struct{ error }

func (e firstLine) Error() string { line, _, _ := strings.Cut(e.error.Error(), "\n"); return line }
func (e firstLine) Unwrap() error { return e.error }
