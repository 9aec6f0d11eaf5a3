package dynamodb

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"strings"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// notFound is the error of a table that does not exist.
const notFound = "ResourceNotFoundException"

// unknownOperation is an emulator's error: the service knows every operation
// that we use.
const unknownOperation = "UnknownOperationException"

// failed prepares an error of the AWS SDK for the [backends.Base]. It returns
// nil for nil.
func (b *Backend) failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if awsclient.Code(err) == "" {
		// The network may have gone dark. Then the idle connections are dead
		// too, and finding out one call at a time could cost a lease. A call that
		// Close ended may have dialed since.
		b.idle()
	}
	return awsclient.Failed(ctx, b.client.Options().Credentials, err)
}

// classify is the [backends.Classify] of the backend.
func (b *Backend) classify(err error) (advice string, kind error) {
	switch c := awsclient.Code(err); c {
	case "AccessDeniedException", "AccessDenied":
		if b.base.ReadOnly() {
			return "an administrator can allow dynamodb:GetItem and BatchGetItem on the table, and Scan to list its elections, see Reading alone in docs/stores/dynamodb.md", backends.ErrDenied
		}
		return "an administrator can allow dynamodb:GetItem, BatchGetItem, PutItem, DescribeTable and DescribeTimeToLive on the table, and Scan to list its elections, see docs/stores/dynamodb.md", backends.ErrDenied
	case "UnrecognizedClientException", "InvalidClientTokenId", "MissingAuthenticationTokenException", "MissingAuthenticationToken",
		"IncompleteSignatureException", "IncompleteSignature", "OptInRequired", "SubscriptionRequiredException", "NotAuthorized":
		return "check the credentials (aws sts get-caller-identity), and that they are good for this region and endpoint", backends.ErrDenied
	case "InvalidSignatureException", "RequestExpired", "RequestTimeTooSkewed":
		if c != "InvalidSignatureException" || strings.Contains(err.Error(), "Signature expired") || strings.Contains(err.Error(), "Signature not yet current") {
			return "this machine's clock is wrong by minutes: set it right", backends.ErrUnavailable
		}
		return "check the secret access key, and that nothing on the way changes requests", backends.ErrDenied
	case "ExpiredTokenException", "ExpiredToken":
		return "the credentials have expired; the AWS SDK fetches new ones", backends.ErrUnavailable
	case notFound:
		return "the table is gone from this region and account: restore it, with its items", backends.ErrMisconfigured
	case "ValidationException":
		return "the table does not fit, perhaps because it was replaced while in use: name another table, and create it with: " + b.createCommand(), backends.ErrMisconfigured
	case unknownOperation, "SerializationException":
		return "the server that answers is not DynamoDB; check the endpoint", backends.ErrMisconfigured
	case "ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "LimitExceededException":
		return "the service throttles: see the table's capacity, or bill it on demand", backends.ErrUnavailable
	case "":
		if errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(*tls.CertificateVerificationError)) || errors.As(err, new(tls.RecordHeaderError)) {
			return "TLS with the endpoint failed: check whether it is http or https, and AWS_CA_BUNDLE", backends.ErrMisconfigured
		}
		return awsclient.Unreachable, backends.ErrUnavailable
	}
	return "it may pass", backends.ErrUnavailable
}
