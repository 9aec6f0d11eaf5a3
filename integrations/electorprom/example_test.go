package electorprom_test

import (
	"context"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/integrations/electorprom"
)

func ExampleNew() {
	metrics := electorprom.New()
	prometheus.MustRegister(metrics, metrics.Kubernetes()) // the latter for dashboards that have Kubernetes' names

	e, err := elector.Open(context.Background(), os.Getenv("ELECTOR_URL"), "invoices", &elector.Options{Trace: metrics.Trace()})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}
