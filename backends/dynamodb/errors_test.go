package dynamodb

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"

	"github.com/elector-go/elector/backends"
)

// The answers come through the SDK, whose errors differ between its releases.
func TestErrors(t *testing.T) {
	f := newFake(t)
	b := f.open(t)
	for _, test := range []struct {
		status        int
		code, message string
		want          error
	}{
		{400, "ProvisionedThroughputExceededException", "", backends.ErrUnavailable},
		{400, "ThrottlingException", "", backends.ErrUnavailable},
		{400, "RequestLimitExceeded", "", backends.ErrUnavailable},
		{400, "TransactionConflictException", "", backends.ErrUnavailable},
		{400, "ReplicatedWriteConflictException", "", backends.ErrUnavailable},
		{400, "SomethingNew", "", backends.ErrUnavailable},
		{500, "InternalServerError", "", backends.ErrUnavailable},
		{503, "ServiceUnavailable", "", backends.ErrUnavailable},
		{400, "AccessDeniedException", "", backends.ErrDenied},
		{400, "UnrecognizedClientException", "The security token included in the request is invalid", backends.ErrDenied},
		{400, "MissingAuthenticationTokenException", "", backends.ErrDenied},
		{400, "IncompleteSignatureException", "", backends.ErrDenied},
		{400, "InvalidSignatureException", "The request signature we calculated does not match", backends.ErrDenied},
		{400, "InvalidSignatureException", "Signature expired: 1 is now earlier than 2", backends.ErrUnavailable},
		{400, "InvalidSignatureException", "Signature not yet current: 2 is still later than 1", backends.ErrUnavailable},
		{400, "ExpiredTokenException", "", backends.ErrDenied}, // the environment's
		{400, "ResourceNotFoundException", "", backends.ErrMisconfigured},
		{400, "ValidationException", "The provided key element does not match the schema", backends.ErrMisconfigured},
		{400, unknownOperation, "", backends.ErrMisconfigured},
	} {
		f.on("GetItem", fails(test.status, test.code, test.message))
		f.on("PutItem", fails(test.status, test.code, test.message))
		_, loading := b.Load(t.Context(), "a")
		_, swapping := b.Swap(t.Context(), "a", backends.Record{}, record)
		for _, err := range []error{loading, swapping} {
			var own smithy.APIError
			if !errors.Is(err, test.want) || !errors.As(err, &own) || own.ErrorCode() != test.code {
				t.Errorf("%s: got %v, want %v and the service's own error", test.code, err, test.want)
			}
			if !strings.Contains(err.Error(), "election a") {
				t.Errorf("%s: %v does not name the election", test.code, err)
			}
		}
	}

	f.on("PutItem", fails(400, "ConditionalCheckFailedException", "The conditional request failed"))
	if _, err := b.Swap(t.Context(), "a", backends.Record{}, record); !errors.Is(err, backends.ErrConflict) {
		t.Errorf("a failed condition: got %v, want ErrConflict", err)
	}
	for what, answer := range map[string]http.HandlerFunc{"HTML": says("<html>"), "nothing": func(http.ResponseWriter, *http.Request) {}, "a proxy's": func(w http.ResponseWriter, r *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }} {
		f.on("PutItem", answer)
		if r, err := b.Swap(t.Context(), "a", backends.Record{}, record); what != "nothing" && !errors.Is(err, backends.ErrUnavailable) {
			t.Errorf("%s instead of an answer: got %+v, %v", what, r, err)
		}
	}
	f.Close()
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("no server: got %v, want ErrUnavailable", err)
	}
}

// What the SDK can fetch anew comes back by itself.
func TestExpiredCredentials(t *testing.T) {
	f := newFake(t)
	options := f.client().Options()
	for _, renewable := range []bool{true, false} {
		options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "hunter2", SessionToken: "token", CanExpire: renewable, Expires: time.Now().Add(time.Hour)}, nil
		})
		f.on("GetItem", says(`{}`))
		b, err := New(t.Context(), dynamodb.New(options), &Options{Table: "elector"})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		f.on("GetItem", fails(400, "ExpiredTokenException", "The security token included in the request is expired"))
		if _, err := b.Load(t.Context(), "a"); renewable != errors.Is(err, backends.ErrUnavailable) || renewable == errors.Is(err, backends.ErrDenied) {
			t.Errorf("renewable is %v: got %v", renewable, err)
		}
	}
}

// Credentials that cannot be fetched are final when opening, and may come back
// later.
func TestLostCredentials(t *testing.T) {
	f := newFake(t)
	options := f.client().Options()
	lost := false
	options.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		if lost {
			return aws.Credentials{}, errors.New("no role is to be seen")
		}
		return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "hunter2"}, nil
	})
	b, err := New(t.Context(), dynamodb.New(options), &Options{Table: "elector"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	lost = true
	if _, err := b.Load(t.Context(), "a"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	if _, err := New(t.Context(), dynamodb.New(options), &Options{Table: "elector"}); !errors.Is(err, backends.ErrDenied) || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("opening: got %v, want ErrDenied", err)
	}
	options.Credentials = nil
	if _, err := New(t.Context(), dynamodb.New(options), &Options{Table: "elector"}); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("opening without a provider: got %v, want ErrDenied", err)
	}
}

// The service repeats a request whose signature is wrong, with all its headers.
func TestErrorsHoldNoSecret(t *testing.T) {
	f := newFake(t)
	t.Setenv("AWS_SESSION_TOKEN", "hunter3")
	b := f.open(t)
	f.on("GetItem", fails(400, "InvalidSignatureException", "The request signature we calculated does not match.\n\nThe Canonical String for this request should have been\n'POST\n/\n\nx-amz-security-token:hunter3\n'"))
	_, err := b.Load(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "does not match") {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "hunter3", "\n"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q is in %q", secret, err.Error())
		}
	}
}
