package electorprom_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/partition"
)

var metric = regexp.MustCompile(`\belector_[a-z_]+`)

// The alert rules and the dashboard use metrics that exist, and all of them.
func TestFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		metrics := electorprom.New()
		win(t, join(t, memory.New(), "invoices", metrics.Trace(), elector.Options{}))
		metrics.GroupTrace().Planned(t.Context(), partition.PlanInfo{Group: "orders", Store: "memory://"})
		metrics.Trace().Waiting(t.Context(), elector.CampaignInfo{Election: "ledger", Store: "memory://", Err: backends.ErrDenied})
		unused := map[string]bool{}
		for _, family := range gather(t, metrics) {
			unused[family.GetName()] = true
		}
		exists := func(name string) bool {
			for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
				if family, cut := strings.CutSuffix(name, suffix); cut {
					if _, ok := unused[family]; ok {
						unused[family] = false
						return true
					}
				}
			}
			return false
		}
		for _, file := range []string{"alerts.yaml", "dashboard.json"} {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range metric.FindAllString(string(text), -1) {
				if !exists(name) {
					t.Errorf("%s has %s, which does not exist", file, name)
				}
			}
		}
		for name, is := range unused {
			if is {
				t.Errorf("neither the alert rules nor the dashboard use %s", name)
			}
		}
	})
}
