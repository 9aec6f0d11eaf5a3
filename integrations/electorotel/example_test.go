package electorotel_test

import (
	"context"
	"log"
	"os"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/integrations/electorotel"
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
