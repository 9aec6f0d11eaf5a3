package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/examples/singleton/demo"
)

const ms = time.Millisecond

func good() *demo.Figures {
	return &demo.Figures{
		TTL: 2 * time.Second, Connect: 34 * ms, Acquire: 4200 * time.Microsecond, Handover: 56 * ms, HandoverLimit: time.Second,
		Takeover: 2290 * ms, TakeoverLimit: 3350 * ms, Requests: 12, Idle: 6 * time.Second, TimeLine: "  0.00 s  A  LEADS",
	}
}

func TestReport(t *testing.T) {
	bad := good()
	bad.Takeover, bad.Problems = 4*time.Second, []string{"no leader was terminated", "the leases overlapped"}
	late := good()
	late.Takeover, late.Late = 4*time.Second, []string{"takeover took 4.00 s: 0.65 s late"}
	etcd := row{kind: "etcd", how: "local process etcd", figures: good()}
	for _, c := range []struct {
		name      string
		rows      []row
		promised  bool
		has, lack []string
	}{
		{"all well", []row{etcd, {kind: "gcs", how: "container; not otherwise: because", figures: good()}}, true,
			[]string{"etcd  ", "gcs  ", "local process etcd", "container", "2.00 s", "34 ms", "4.2 ms", "56 ms", "2.29 s", "3.35 s", "120.0"},
			[]string{"NOT AS PROMISED", "LEADS", "because"}},
		{"problems", []row{etcd, {kind: "gcs", figures: bad}}, false,
			[]string{"4.00 s", "NOT AS PROMISED on gcs: no leader was terminated", "NOT AS PROMISED on gcs: the leases overlapped", "What happened on gcs:\n  0.00 s  A  LEADS"},
			[]string{"on etcd:", "Nowhere"}},
		{"late", []row{{kind: "gcs", figures: late}}, true,
			[]string{"4.00 s", "Late on gcs: takeover took 4.00 s: 0.65 s late\n", "Nowhere"},
			[]string{"NOT AS PROMISED", "What happened"}},
		{"no store", []row{{kind: "gcs", err: errors.New("no gcs to test with")}, etcd}, false,
			[]string{"gcs    –", "NOT AS PROMISED on gcs: no gcs to test with", "2.29 s"},
			[]string{"What happened", "Nowhere"}},
		{"died at the end", []row{{kind: "gcs", figures: good(), err: errors.New("died by itself")}}, false,
			[]string{"NOT AS PROMISED on gcs: died by itself", "What happened on gcs"},
			[]string{"Nowhere"}},
		{"nothing at all", []row{{kind: "gcs"}}, false, []string{"NOT AS PROMISED on gcs: nothing was measured"}, []string{"Nowhere"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			if promised := report(&out, c.rows); promised != c.promised {
				t.Errorf("as promised: %v; want %v", promised, c.promised)
			}
			for _, text := range c.has {
				if !strings.Contains(out.String(), text) {
					t.Errorf("the report lacks %q", text)
				}
			}
			for _, text := range c.lack {
				if strings.Contains(out.String(), text) {
					t.Errorf("the report has %q", text)
				}
			}
			if t.Failed() {
				t.Log(out.String())
			}
		})
	}
}

func TestUnknownStoreIsRefused(t *testing.T) {
	err := run(t.Context(), []string{"etcd", "clay"})
	if err == nil || !strings.Contains(err.Error(), `"clay"`) {
		t.Errorf("error %v; want one that names the store", err)
	}
}

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "–", -ms: "–", 300 * time.Microsecond: "0.3 ms", 9900 * time.Microsecond: "9.9 ms", 10 * ms: "10 ms",
		999 * ms: "999 ms", time.Second: "1.00 s", 12345 * ms: "12.35 s",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is printed as %q; want %q", d, got, want)
		}
	}
}
