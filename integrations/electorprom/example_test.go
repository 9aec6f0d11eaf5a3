package electorprom_test

import (
	"context"
	"log"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/integrations/electorprom"
	"github.com/elector-go/elector/partition"
)

func ExampleNew() {
	metrics := electorprom.New()
	prometheus.MustRegister(metrics, metrics.Kubernetes()) // the latter for dashboards that have Kubernetes' names

	e, err := elector.Open(context.Background(), os.Getenv("ELECTOR_URL"), "invoices", &elector.Options{Trace: metrics.Trace()})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()

	g, err := partition.Join(context.Background(), os.Getenv("ELECTOR_URL"), "orders", &partition.Options{
		Partitions: 64,
		Trace:      metrics.GroupTrace(),
		Elector:    elector.Options{Trace: metrics.Trace()}, // for the renewals of its seat
	})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
}
