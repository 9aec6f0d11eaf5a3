package dynamodb

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A fake speaks enough of the service's protocol to answer what an emulator
// never does. By default the table is there and fits, and has no items.
type fake struct {
	*httptest.Server
	mutex   sync.Mutex
	answers map[string]http.HandlerFunc // by operation
	asked   map[string][]string         // bodies, by operation
}

const description = `"TableName":"elector","TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"election","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"election","AttributeType":"S"}]`

func newFake(t *testing.T) *fake {
	t.Helper()
	f := unstarted(t)
	f.Start()
	return f
}

func unstarted(t *testing.T) *fake {
	t.Helper()
	settings(t)
	f := &fake{asked: map[string][]string{}, answers: map[string]http.HandlerFunc{
		"DescribeTable":      says(`{"Table":{` + description + `}}`),
		"DescribeTimeToLive": says(`{"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}}`),
		"GetItem":            says(`{}`),
		"PutItem":            says(`{}`),
	}}
	f.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		body, _ := io.ReadAll(r.Body)
		f.mutex.Lock()
		f.asked[operation] = append(f.asked[operation], string(body))
		answer := f.answers[operation]
		f.mutex.Unlock()
		if answer == nil {
			answer = fails(400, unknownOperation, "")
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// settings keep what the machine is set to out of the tests.
func settings(t *testing.T) {
	for _, key := range []string{"AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		t.Setenv(key, "")
	}
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "hunter2", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1"} {
		t.Setenv(key, value)
	}
}

func (f *fake) on(operation string, answer http.HandlerFunc) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.answers[operation] = answer
}

func (f *fake) bodies(operation string) []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.asked[operation]
}

func (f *fake) address(parameters string) *url.URL {
	return &url.URL{Scheme: "dynamodb", Host: "elector", RawQuery: "region=eu-central-1&endpoint=" + f.URL + parameters}
}

// open returns a handle that is closed at the end of the test.
func (f *fake) open(t *testing.T) backends.Backend {
	t.Helper()
	b, err := open(t.Context(), f.address(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// refused opens with parameters and returns why that fails.
func (f *fake) refused(t *testing.T, parameters string) error {
	t.Helper()
	b, err := open(t.Context(), f.address(parameters))
	if err == nil {
		b.Close()
	}
	return err
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, body) }
}

func fails(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		quoted, _ := json.Marshal(message)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":%s}`, code, quoted)
	}
}

// silent gives no answer before the test ends or the client hangs up.
func silent(ctx context.Context) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-ctx.Done():
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler) // an answer now could overtake the client's end of the connection
	}
}

func reset(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }

var record = backends.Record{Holder: "h", Token: 1, TTL: time.Second, RenewEvery: time.Millisecond, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
