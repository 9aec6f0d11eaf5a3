package azureblob

import (
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"

	"github.com/elector-go/elector/backends"
)

var (
	errNoTag         = errors.New("the answer has no ETag, or no names of blobs")
	errNoCredentials = errors.New("no usable credentials")
	errImmutable     = errors.New("the container is immutable")
	errSecondary     = errors.New("the address is that of the account's secondary region")
)

// classify is a [backends.Classify].
func (b *Backend) classify(err error) (advice string, kind error) {
	immutable := fmt.Sprintf("blobs could be written once and not again; use a separate container for elections, or remove the policy: az storage container immutability-policy delete, az storage container legal-hold clear, with --account-name %s --container-name %s", b.account, b.name)
	switch {
	case errors.Is(err, errNoCredentials):
		return "set AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN; for a managed identity, make the client yourself and give it to azureblob.New", backends.ErrDenied
	case errors.Is(err, errImmutable):
		return immutable, backends.ErrMisconfigured
	case errors.Is(err, errSecondary):
		return "it lags behind the primary region, so a leader read there may be a former one; use the account's primary address", backends.ErrMisconfigured
	case errors.Is(err, errNoTag):
		return "what answers is not Blob Storage; check the endpoint and proxies", backends.ErrMisconfigured
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		return "TLS with the server failed; check the machine's certificate authorities and proxies, and whether the endpoint speaks TLS (https://) or not (http://)", backends.ErrMisconfigured
	}

	switch c := code(err); c {
	case bloberror.LeaseIDMissing, bloberror.LeaseIDMismatchWithBlobOperation:
		return fmt.Sprintf("another program holds a lease of Azure on the blob and locks it; stop that program, then run: az storage blob lease break --account-name %s --container-name %s --blob-name %sELECTION%s", b.account, b.name, b.prefix, suffix), backends.ErrReadOnly
	case bloberror.BlobImmutableDueToPolicy:
		return immutable, backends.ErrMisconfigured
	case bloberror.ContainerNotFound, bloberror.ContainerDisabled:
		if b.base.ReadOnly() {
			return fmt.Sprintf("there is no container %s in the account %s, so no election has ever used it; check both in the URL", b.name, b.account), backends.ErrMisconfigured
		}
		return fmt.Sprintf("there is no container %s in the account; correct the URL or run: az storage container create --account-name %s --name %s", b.name, b.account, b.name), backends.ErrMisconfigured
	case bloberror.ContainerBeingDeleted:
		return "the container is being deleted, which takes half a minute or more; then create it again", backends.ErrUnavailable
	case bloberror.InvalidBlobType, bloberror.BlobArchived, bloberror.BlobBeingRehydrated, bloberror.BlobUsesCustomerSpecifiedEncryption, bloberror.SnapshotsPresent:
		return "another program changed the blob: it is archived, encrypted with a key of its own, or no block blob; use a separate container for elections", backends.ErrMisconfigured
	case bloberror.InvalidResourceName, bloberror.InvalidURI:
		return "correct the container and the prefix in the URL", backends.ErrMisconfigured
	case "RequestForbiddenByContainerEncryptionPolicy", bloberror.ConditionHeadersNotSupported, bloberror.MultipleConditionHeadersNotSupported:
		return "a policy of the account or container forbids plain conditional writes; use a separate container for elections", backends.ErrMisconfigured
	case bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions, bloberror.AuthorizationResourceTypeMismatch, bloberror.AuthorizationServiceMismatch, "UnauthorizedBlobOverwrite":
		permissions, role := "permissions r and w", "Contributor"
		if b.base.ReadOnly() {
			permissions, role = "permission r", "Reader"
		}
		return fmt.Sprintf("the credentials do not permit this; a SAS needs the %s, and l to list; an identity needs a role: az role assignment create --role 'Storage Blob Data %s' --assignee IDENTITY --scope SCOPE-OF-CONTAINER-%s", permissions, role, b.name), backends.ErrDenied
	case bloberror.AuthorizationSourceIPMismatch, bloberror.AuthorizationProtocolMismatch, bloberror.AuthorizationFailure:
		return "the account's network rules, or the SAS, do not allow requests from here; see the account's firewall settings", backends.ErrDenied
	case bloberror.AuthenticationFailed, bloberror.InvalidAuthenticationInfo, bloberror.NoAuthenticationInformation, "KeyBasedAuthenticationNotPermitted", "PublicAccessNotPermitted", bloberror.AccountIsDisabled:
		return "it refuses the credentials: check that the key or SAS is the account's and has not expired or been rotated, that the account permits it, and this machine's clock", backends.ErrDenied
	case bloberror.ServerBusy, bloberror.OperationTimedOut, bloberror.InternalError, bloberror.AccountBeingCreated:
		return "it asks to try later; if that stays, look at the account's metrics and at azure.status.microsoft", backends.ErrUnavailable
	}

	switch status(err) {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "it refuses the credentials, or a proxy does", backends.ErrDenied
	}
	return "check that the network and a proxy let HTTPS through to the account's address, that the account's name is right, and look at azure.status.microsoft", backends.ErrUnavailable
}

// code returns the error code of the service, or "".
func code(err error) bloberror.Code {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return bloberror.Code(answer.ErrorCode)
	}
	return ""
}

// status returns the HTTP status that the service answered with, or 0.
func status(err error) int {
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return answer.StatusCode
	}
	return 0
}

// A refusal shows an error of the service in one line. The library prints the whole
// answer, over many.
type refusal struct{ *azcore.ResponseError }

func (r refusal) Unwrap() error { return r.ResponseError }

func (r refusal) Error() string {
	text := fmt.Sprint(r.StatusCode)
	if r.ErrorCode != "" {
		text += " " + r.ErrorCode
	}
	if r.RawResponse == nil {
		return text
	}
	body, _ := runtime.Payload(r.RawResponse) // which the library has read
	var answer struct{ Message string }
	if xml.Unmarshal(body, &answer) == nil && answer.Message != "" {
		line, _, _ := strings.Cut(answer.Message, "\n") // the ids of the request follow
		text += ": " + strings.TrimSpace(line)
	}
	if id := r.RawResponse.Header.Get("x-ms-request-id"); id != "" {
		text += " (request " + id + ")"
	}
	return text
}

// plain returns an error of the library in one line, without the signature that an
// address may have. It returns nil for nil.
func plain(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		failed.URL, _, _ = strings.Cut(failed.URL, "?") // it is of this request alone
	}
	var answer *azcore.ResponseError
	if errors.As(err, &answer) {
		return refusal{answer}
	}
	if err != nil && strings.Contains(err.Error(), "\n") { // of a credential, say
		return firstLine{err}
	}
	return err
}

// firstLine shows the first line of an error.
type firstLine struct{ error }

func (e firstLine) Error() string { line, _, _ := strings.Cut(e.error.Error(), "\n"); return line }
func (e firstLine) Unwrap() error { return e.error }
