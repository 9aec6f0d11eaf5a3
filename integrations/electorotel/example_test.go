package electorotel_test

import (
	"context"
	"log"
	"os"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/integrations/electorotel"
	"github.com/elector-go/elector/partition"
)

func ExampleNew() {
	trace, err := electorotel.New(nil, nil) // OpenTelemetry's global providers
	if err != nil {
		log.Fatal(err)
	}
	e, err := elector.Open(context.Background(), os.Getenv("ELECTOR_URL"), "invoices", &elector.Options{Trace: trace})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
}

func ExampleNewGroup() {
	groups, err := electorotel.NewGroup(nil) // OpenTelemetry's global provider
	if err != nil {
		log.Fatal(err)
	}
	g, err := partition.Join(context.Background(), os.Getenv("ELECTOR_URL"), "orders", &partition.Options{Partitions: 64, Trace: groups})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
}
