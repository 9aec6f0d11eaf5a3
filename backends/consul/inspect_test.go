package consul

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

func TestInspect(t *testing.T) {
	const self = `{"Config":{"Version":"1.20.1"},"DebugConfig":{"ServerMode":true,"ConsulRaftHeartbeatTimeout":"5s","HTTPMaxConnsPerClient":100}}`
	for name, test := range map[string]struct {
		peers, self string
		status      int
		ttl         time.Duration
		cures       string // what they are about
	}{
		"one server":      {`["127.0.0.1:1"]`, strings.NewReplacer("5s", "1s", "100", "200").Replace(self), 200, 15 * time.Second, "servers"},
		"no server":       {`[]`, strings.NewReplacer("5s", "1s", "100", "200").Replace(self), 200, 15 * time.Second, "servers"},
		"well set":        {`["1","2","3"]`, strings.NewReplacer("5s", "1s", "100", "200").Replace(self), 200, 15 * time.Second, ""},
		"slow servers":    {`["1","2","3"]`, strings.Replace(self, "100", "200", 1), 200, 15 * time.Second, "failover"},
		"a longer TTL":    {`["1","2","3"]`, strings.Replace(self, "100", "200", 1), 200, 35 * time.Second, ""},
		"few connections": {`["1","2","3"]`, strings.Replace(self, "5s", "1s", 1), 200, 15 * time.Second, "connections"},
		"a client agent":  {`["1","2","3"]`, strings.NewReplacer("true", "false", "100", "200").Replace(self), 200, 15 * time.Second, ""},
		"no right":        {`["1","2","3"]`, "Permission denied: token lacks permission 'agent:read'", 403, 15 * time.Second, "agent"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
			f.instead("/v1/status/peers", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", now.Format(http.TimeFormat))
				io.WriteString(w, test.peers)
			})
			f.instead("/v1/agent/self", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				io.WriteString(w, test.self)
			})
			i, err := f.backend().Inspect(t.Context(), test.ttl)
			if err != nil || !i.Clock.Equal(now) || len(i.Findings) < 2 {
				t.Fatalf("got %+v, %v", i, err)
			}
			var cures []string
			for _, finding := range i.Findings {
				if finding.Seen == "" {
					t.Errorf("%s: nothing was seen", finding.What)
				}
				if finding.Fix != "" {
					cures = append(cures, finding.What)
				}
			}
			if strings.Join(cures, " ") != test.cures {
				t.Errorf("cures for %q, want %q: %+v", cures, test.cures, i.Findings)
			}
		})
	}
	f := newFake()
	f.instead("", refusing(500, "rpc error"))
	if _, err := f.backend().Inspect(t.Context(), time.Second); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
}

func TestInspectToken(t *testing.T) {
	for address, fix := range map[string]bool{"http://h:8500": true, "https://h:8501": false, "http://127.0.0.1:8500": false, "http://[::1]:8500": false, "http://localhost:8500": false} {
		for _, token := range []string{"", "hunter2"} {
			found := made(New(t.Context(), &http.Client{}, &Options{Address: address, Token: token})).inspectToken()
			if len(found) > 0 != (token != "") || len(found) > 0 && (found[0].Fix != "") != fix {
				t.Errorf("%s with the token %q: %+v", address, token, found)
			}
		}
	}
}
