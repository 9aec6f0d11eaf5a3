package chaos

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A throttle stands before the emulator of a cloud's service and, when told
// to, answers as the service does when it gets too many requests: none of
// our emulators does that by itself.
type throttle struct {
	address string
	kind    string
	on      atomic.Bool
	calm    sync.RWMutex // held while requests are under way
	refused atomic.Int64 // requests
	server  http.Server
}

func newThrottle(upstream, kind string) (*throttle, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &throttle{address: l.Addr().String(), kind: kind}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: upstream})
	forward.ErrorLog = discard
	t.server.ReadHeaderTimeout = time.Minute
	t.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !t.on.Load() {
			t.calm.RLock()
			defer t.calm.RUnlock()
			forward.ServeHTTP(w, r)
			return
		}
		t.refused.Add(1)
		t.refuse(w)
	})
	go t.server.Serve(l) // until close
	return t, nil
}

// refuse answers with the words of the services' documentation.
func (t *throttle) refuse(w http.ResponseWriter) {
	if t.kind == stores.DynamoDB {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusBadRequest)
		w.Write([]byte(`{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"The level of configured provisioned throughput for the table was exceeded."}`))
		return
	}
	if t.kind == stores.AzureBlob {
		w.Header().Set("x-ms-error-code", "ServerBusy")
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte(`<Error><Code>ServerBusy</Code><Message>The server is currently unable to receive requests. Please retry your request.</Message></Error>`))
		return
	}
	if t.kind == stores.S3 {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusServiceUnavailable)
		w.Write([]byte(`<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	w.Write([]byte(`{"error":{"code":429,"message":"The object exceeded the rate limit for object mutation operations.","errors":[{"domain":"usageLimits","reason":"rateLimitExceeded"}]}}`))
}

func (t *throttle) close() error { return t.server.Close() }

// inCalm ends a server while none of the candidates' requests is under way, if that
// may lose one that it acknowledges meanwhile: see stores.startAzureBlob.
func (p *Place) inCalm(end func() error) error {
	if p.store.Kind == stores.AzureBlob {
		p.gate.calm.Lock()
		defer p.gate.calm.Unlock()
	}
	return end()
}
