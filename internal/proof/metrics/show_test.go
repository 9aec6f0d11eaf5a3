package metrics

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/internal/binaries"
	"github.com/elector-go/elector/internal/proof/stores"
	"github.com/elector-go/elector/partition"
)

// Prometheus watches a leader on a real etcd, behind a proxy whose latency rises with
// each renewal until the lease is lost: the alert for the margin fires before that. Then
// each query of the dashboard has data.
func TestAlertBeforeTheLoss(t *testing.T) {
	t.Parallel() // it waits most of the time
	etcd, err := stores.Start(t.Context(), stores.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Stop()
	proxy, err := network.New(etcd.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()

	metrics, registry := electorprom.New(), prometheus.NewRegistry()
	registry.MustRegister(metrics)
	target := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer target.Close()
	p := watch(t, target.Listener.Addr().String())

	renewed, ended := make(chan elector.LeaseInfo, 100), make(chan time.Time, 1)
	own := &elector.Trace{
		Renewed: func(_ context.Context, l elector.LeaseInfo) { renewed <- l },
		Ended:   func(context.Context, elector.LeaseInfo) { ended <- time.Now() },
	}
	e, err := elector.Open(t.Context(), etcd.Through(proxy.Address()), "invoices", &elector.Options{
		TTL: 30 * time.Second, Trace: elector.MultiTrace(metrics.Trace(), own), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	defer proxy.Heal()
	lease, err := e.Campaign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.until(`elector_leading == 1`) // and so before the first increase of anything
	for latency := time.Duration(0); lease.Check() == nil; latency += time.Second {
		if err := errors.Join(proxy.Delay(latency, 0), proxy.Break(network.Latency)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s latency %v", time.Now().Format(time.TimeOnly), latency)
		select {
		case l := <-renewed:
			t.Logf("%s renewed, margin %.2f", time.Now().Format(time.TimeOnly), float64(l.Margin)/float64(l.Validity))
		case <-lease.Context().Done():
		}
	}
	lost := <-ended
	if err := proxy.Heal(); err != nil {
		t.Fatal(err)
	}
	p.until(`elector_transitions_total{cause="lost"} == 1`)
	p.until(`ALERTS{alertname="ElectorLeaseLost", alertstate="firing"}`)

	fired := p.fired()
	for _, alert := range slices.SortedFunc(maps.Keys(fired), func(a, b string) int { return fired[a].Compare(fired[b]) }) {
		t.Logf("%v after the loss: %s", fired[alert].Sub(lost).Round(time.Second), alert)
	}
	if at, ok := fired["ElectorMarginShrinks"]; !ok || !at.Before(lost) {
		t.Errorf("the lease was lost at %v, and the alert for the margin fired at %v", lost, at)
	}

	group := memory.NewStore()
	defer member(t, group.Handle(), "a", 2*time.Second, metrics.GroupTrace())()
	p.until(`elector_group_owned == 4 and elector_group_worker_failures_total > 0`)
	defer member(t, group.Handle(), "b", 2*time.Second, metrics.GroupTrace())()
	p.until(`elector_group_transitions_total{cause="returned"} == 2 and on () elector_group_owned == 4`)
	fence := elector.Fence{Trace: metrics.Trace()}
	fence.Admit(t.Context(), "ledger", 2)
	fence.Admit(t.Context(), "ledger", 1)
	p.until(`elector_fence_refused_total == 1`)
	queries := panels(t)
	for _, query := range queries {
		query = strings.NewReplacer("$__rate_interval", "2m", "$election", ".*", "$group", ".*", "$backend", ".*").Replace(query)
		if data := p.query(query); !slices.ContainsFunc(data, func(s series) bool { return s.number() == s.number() }) {
			t.Errorf("without data: %s", query)
		}
	}
	t.Logf("%d queries of the dashboard have data", len(queries))
}

// member starts a member of a group of 4 partitions. The first worker of each partition
// fails.
func member(t *testing.T, b backends.Backend, id string, ttl time.Duration, trace *partition.Trace) (stop func()) {
	t.Helper()
	g, err := partition.New(b, "orders", &partition.Options{Partitions: 4, Trace: trace, Elector: elector.Options{ID: id, TTL: ttl, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	var failed [4]atomic.Bool
	go func() {
		done <- g.Run(ctx, func(ctx context.Context, l *partition.Lease) error {
			if failed[l.Partition()].CompareAndSwap(false, true) {
				return errors.New("no ledger")
			}
			<-ctx.Done()
			return nil
		})
	}()
	return func() {
		cancel()
		if err := errors.Join(<-done, g.Close()); err != nil {
			t.Error(err)
		}
	}
}

// panels returns the queries of the dashboard.
func panels(t *testing.T) (queries []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		if len(panel.Targets) == 0 {
			t.Errorf("the panel %q has no query", panel.Title)
		}
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	if len(queries) == 0 {
		t.Fatal("the dashboard has no queries")
	}
	return queries
}

// A server is a Prometheus that scrapes a target every second, with the alert rules.
type server struct {
	*testing.T
	url   string
	begun time.Time
	gone  chan struct{} // closed when it has ended
}

const config = `
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs: [{job_name: show, static_configs: [{targets: [%q]}]}]
`

// watch starts Prometheus, and stops it at the end of the test.
func watch(t *testing.T, target string) *server {
	t.Helper()
	program, _, err := binaries.Prometheus()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(filepath.Join(files, "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), fmt.Appendf(nil, config, rules, target), 0o644); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	var log strings.Builder
	cmd := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+address)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &log, &log
	if err := child.Start(cmd); err != nil {
		t.Fatal(err)
	}
	s := &server{T: t, url: "http://" + address, begun: time.Now(), gone: make(chan struct{})}
	go func() {
		defer close(s.gone)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		<-s.gone
		if t.Failed() {
			t.Logf("Prometheus: %v\n%s", cmd.ProcessState, &log)
		}
	})
	s.until(`up == 1`)
	return s
}

// A series is one of an answer.
type series struct {
	Metric map[string]string
	Value  [2]any   // time and number
	Values [][2]any // of a range
}

func (s series) number() float64 {
	n, _ := strconv.ParseFloat(s.Value[1].(string), 64)
	return n
}

// ask asks Prometheus, and fails the test unless it understands.
func (s *server) ask(path string, arguments url.Values) ([]series, error) {
	s.Helper()
	answer, err := http.PostForm(s.url+"/api/v1/"+path, arguments)
	if err != nil {
		return nil, err // it is starting
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusServiceUnavailable {
		return nil, errors.New(answer.Status)
	}
	var read struct {
		Error string
		Data  struct{ Result []series }
	}
	body, err := io.ReadAll(answer.Body)
	if err := cmp.Or(err, json.Unmarshal(body, &read)); err != nil || read.Error != "" {
		s.Fatalf("%v: %v %s", arguments, err, body)
	}
	return read.Data.Result, nil
}

func (s *server) query(query string) []series {
	s.Helper()
	data, err := s.ask("query", url.Values{"query": {query}})
	if err != nil {
		s.Fatal(err)
	}
	return data
}

// until waits until a query has a result, or Prometheus has ended.
func (s *server) until(query string) {
	s.Helper()
	for {
		if data, _ := s.ask("query", url.Values{"query": {query}}); len(data) > 0 {
			return
		}
		select {
		case <-s.gone:
			s.Fatalf("Prometheus has ended, and %s has no result", query)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// fired returns when each alert fired first.
func (s *server) fired() map[string]time.Time {
	s.Helper()
	data, err := s.ask("query_range", url.Values{
		"query": {`ALERTS{alertstate="firing"}`}, "step": {"1"},
		"start": {strconv.FormatInt(s.begun.Unix(), 10)}, "end": {strconv.FormatInt(time.Now().Unix(), 10)},
	})
	if err != nil {
		s.Fatal(err)
	}
	first := map[string]time.Time{}
	for _, d := range data {
		at := time.Unix(int64(d.Values[0][0].(float64)), 0)
		name := d.Metric["alertname"]
		if before, ok := first[name]; !ok || at.Before(before) {
			first[name] = at
		}
	}
	return first
}
