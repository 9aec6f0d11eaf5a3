package s3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

const noSuchKey = "NoSuchKey"

var (
	errNoTag         = errors.New("the answer has no ETag")
	errTorn          = errors.New("the server answered with the ETag of one state and the content of another")
	errUnconditional = errors.New("the server ignores conditions of writes")
)

// status returns the HTTP status of err, or 0 if err is not an answer.
func status(err error) int {
	var e *smithyhttp.ResponseError
	if errors.As(err, &e) {
		return e.HTTPStatusCode()
	}
	return 0
}

// failed prepares an error of the AWS SDK for the [backends.Base].
func (b *Backend) failed(ctx context.Context, err error) error {
	if status(err) == 0 {
		// The network may have gone dark. Then the idle connections are dead
		// too, and finding out one call at a time could cost a lease.
		b.idle()
	}
	return awsclient.Failed(ctx, b.client.Options().Credentials, err)
}

// classify is the [backends.Classify] of the backend.
func (b *Backend) classify(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, errUnconditional):
		return "two candidates could win; use a server that keeps If-None-Match and If-Match in PutObject, such as Amazon S3, or another store", backends.ErrMisconfigured
	case errors.Is(err, errNoTag):
		return "what answers is not S3; check the endpoint and proxies", backends.ErrMisconfigured
	case errors.Is(err, errTorn):
		return "a write came in between, or the bucket is not Amazon's and its ETags are not MD5s; if it stays, use another server", backends.ErrUnavailable
	}
	switch c := awsclient.Code(err); c {
	case "NoSuchBucket":
		if b.base.ReadOnly() {
			return fmt.Sprintf("there is no bucket %s, so no election has ever used it; check the bucket in the URL, and the endpoint if it has one", b.bucket), backends.ErrMisconfigured
		}
		return fmt.Sprintf("there is no bucket %s; correct the URL or run: aws s3api create-bucket --bucket %s", b.bucket, b.bucket), backends.ErrMisconfigured
	case "AccessDenied", "Forbidden", "AllAccessDisabled", "AccountProblem":
		rights := "s3:GetObject and s3:PutObject"
		if b.base.ReadOnly() {
			rights = "s3:GetObject"
		}
		return fmt.Sprintf("an administrator can allow %s on arn:aws:s3:::%s/%s*, and s3:ListBucket on arn:aws:s3:::%s: without that, S3 answers the same for an object that does not exist", rights, b.bucket, b.prefix, b.bucket), backends.ErrDenied
	case "InvalidAccessKeyId", "InvalidToken", "InvalidSecurity", "NotSignedUp", "MissingSecurityHeader", "SignatureDoesNotMatch":
		return "check the credentials (aws sts get-caller-identity), and that they are good for this endpoint", backends.ErrDenied
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "MovedPermanently":
		return fmt.Sprintf("the bucket is in another region; name it in the URL: aws s3api get-bucket-location --bucket %s", b.bucket), backends.ErrMisconfigured
	case "InvalidBucketName":
		return "correct the bucket in the URL", backends.ErrMisconfigured
	case "NotImplemented":
		return "the server knows no conditional writes; use one that keeps If-None-Match and If-Match in PutObject, such as Amazon S3, or another store", backends.ErrMisconfigured
	case "MethodNotAllowed", "XAmzContentSHA256Mismatch":
		return "what answers is not S3; check the endpoint, path_style and proxies", backends.ErrMisconfigured
	case "InvalidObjectState":
		return "the object was archived; remove the lifecycle rule, and do not use archive tiers for elections", backends.ErrMisconfigured
	case "ExpiredToken":
		return "the credentials have expired; the AWS SDK fetches new ones", backends.ErrUnavailable
	case "RequestTimeTooSkewed":
		return "this machine's clock is wrong by minutes: set it right", backends.ErrUnavailable
	case "SlowDown", "RequestLimitExceeded", "ThrottlingException":
		return "the service throttles this prefix; see what else uses the bucket", backends.ErrUnavailable
	}
	switch s := status(err); {
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)):
		return "TLS with the endpoint failed: check whether it is http or https, and AWS_CA_BUNDLE", backends.ErrMisconfigured
	case s >= 300 && s < 400:
		return "the server redirects, to another region or address; check region, endpoint and path_style", backends.ErrMisconfigured
	case s == http.StatusNotFound, s == http.StatusMethodNotAllowed:
		return "what answers is not S3; check the endpoint, path_style and proxies", backends.ErrMisconfigured
	case s > 0 && s < 300:
		return "the answer cannot be read; check the endpoint and proxies", backends.ErrUnavailable
	case s > 0:
		return "it may pass", backends.ErrUnavailable
	}
	return awsclient.Unreachable, backends.ErrUnavailable
}
