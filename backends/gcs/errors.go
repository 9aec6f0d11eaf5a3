package gcs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"cloud.google.com/go/storage"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/elector-go/elector/backends"
)

var (
	errNoGeneration  = errors.New("the answer has no generation number")
	errNoCredentials = errors.New("no usable credentials")
	errRetention     = errors.New("the bucket has a retention policy")
	errHold          = errors.New("the bucket sets an event-based hold on every new object")
)

// classify is a [backends.Classify].
func (b *Backend) classify(err error) (advice string, kind error) {
	retention := fmt.Sprintf("objects could be written once and not again; use a separate bucket for elections, or run: gcloud storage buckets update gs://%s --clear-retention-period", b.name)
	hold := fmt.Sprintf("held objects can be written once and not again; run: gcloud storage buckets update gs://%s --no-default-event-based-hold, and gcloud storage objects update 'gs://%s/%s*' --no-event-based-hold --no-temporary-hold", b.name, b.name, b.prefix)

	var token *oauth2.RetrieveError
	switch {
	case errors.Is(err, errNoCredentials):
		return "set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, or run on a machine with a service account; for an emulator write ?endpoint=http://host:port", backends.ErrDenied
	case errors.As(err, &token) && token.Response != nil && token.Response.StatusCode < 500 && token.Response.StatusCode != http.StatusTooManyRequests && token.Response.StatusCode != http.StatusRequestTimeout:
		return "Google refuses these credentials: the key or the account was deleted or disabled, or the login has expired", backends.ErrDenied
	case errors.Is(err, errRetention):
		return retention, backends.ErrMisconfigured
	case errors.Is(err, errHold):
		return hold, backends.ErrMisconfigured
	case errors.Is(err, errNoGeneration):
		return "what answers is not Cloud Storage; check the endpoint and proxies", backends.ErrMisconfigured
	case errors.Is(err, storage.ErrObjectNotExist):
		return "the object was replaced while it was being read", backends.ErrUnavailable
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)), says(err, "server gave HTTP response to HTTPS client"):
		return "TLS with the server failed; check the machine's certificate authorities and proxies, and whether the endpoint speaks TLS (https://) or not (http://)", backends.ErrMisconfigured
	}

	status := code(err)
	switch {
	case (errors.Is(err, storage.ErrBucketNotExist) || status == http.StatusNotFound) && b.base.ReadOnly():
		return fmt.Sprintf("there is no bucket %s, so no election has ever used it; check the bucket in the URL", b.name), backends.ErrMisconfigured
	case errors.Is(err, storage.ErrBucketNotExist), status == http.StatusNotFound:
		return fmt.Sprintf("there is no bucket %s; correct the URL or run: gcloud storage buckets create gs://%s --uniform-bucket-level-access --soft-delete-duration=0", b.name, b.name), backends.ErrMisconfigured
	case status == http.StatusTooManyRequests, throttled(err):
		return "it asks for fewer requests; it takes about one write a second of one election, so check that no other process writes these objects, and the quota of the project", backends.ErrUnavailable
	case status == http.StatusUnauthorized:
		return "it refuses the credentials; check GOOGLE_APPLICATION_CREDENTIALS, or the machine's service account, and the clock", backends.ErrDenied
	case status == http.StatusForbidden && (says(err, "retentionPolicyNotMet") || says(err, "retention policy") || says(err, "object retention")):
		return retention, backends.ErrMisconfigured
	case status == http.StatusForbidden && (says(err, "underActiveHold") || says(err, "based hold") || says(err, "temporary hold")):
		return hold, backends.ErrMisconfigured
	case status == http.StatusForbidden && (says(err, "billing account") || says(err, "accountDisabled")):
		return "the project of the bucket has no active billing account", backends.ErrDenied
	case status == http.StatusForbidden && says(err, "storage.objects.list"):
		return fmt.Sprintf("without the permission to list, Cloud Storage does not report that an object is missing; an administrator can run: %s", b.grant()), backends.ErrDenied
	case status == http.StatusForbidden:
		return fmt.Sprintf("an administrator can run: %s", b.grant()), backends.ErrDenied
	case status == http.StatusPreconditionFailed:
		return "a policy of the organization forbids this write, for example one that requires a customer-managed key; give the bucket a default key, or use another bucket", backends.ErrMisconfigured
	case status == http.StatusBadRequest && says(err, "requester pays"):
		return "requester-pays buckets are not supported; use a separate bucket for elections", backends.ErrMisconfigured
	case status == http.StatusBadRequest && says(err, "invalid bucket name"):
		return "correct the bucket in the URL", backends.ErrMisconfigured
	}
	return "check that the network and a proxy let HTTPS through to storage.googleapis.com, or to the endpoint, and look at status.cloud.google.com", backends.ErrUnavailable
}

func (b *Backend) grant() string {
	role := "objectUser"
	if b.base.ReadOnly() {
		role = "objectViewer"
	}
	return fmt.Sprintf("gcloud storage buckets add-iam-policy-binding gs://%s --member=serviceAccount:ACCOUNT --role=roles/storage.%s", b.name, role)
}

// code returns the HTTP status that the service answered with, or 0.
func code(err error) int {
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		return answer.Code
	}
	return 0
}

// throttled recognises an older form of 429.
func throttled(err error) bool {
	return code(err) == http.StatusForbidden && (says(err, "rateLimitExceeded") || says(err, "quotaExceeded"))
}

// says looks for words in the text of an error and, if it is an answer of the
// service, in its body and its reasons.
func says(err error, words string) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	var answer *googleapi.Error
	if errors.As(err, &answer) {
		text += answer.Body
		for _, e := range answer.Errors {
			text += " " + e.Reason
		}
	}
	return strings.Contains(strings.ToLower(text), strings.ToLower(words))
}
