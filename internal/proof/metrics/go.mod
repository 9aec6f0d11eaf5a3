// A module of its own: with these clients the tests of internal/proof could not run
// on the oldest ones that the root declares.
module github.com/elector-go/elector/internal/proof/metrics

go 1.26.0

replace (
	github.com/elector-go/elector => ../../..
	github.com/elector-go/elector/integrations/electorotel => ../../../integrations/electorotel
	github.com/elector-go/elector/integrations/electorprom => ../../../integrations/electorprom
	github.com/elector-go/elector/internal/proof => ..
)

require (
	github.com/elector-go/elector v0.1.0
	github.com/elector-go/elector/integrations/electorotel v0.1.0
	github.com/elector-go/elector/integrations/electorprom v0.1.0
	github.com/elector-go/elector/internal/proof v0.0.0
	github.com/prometheus/client_golang v1.24.1
	go.opentelemetry.io/otel/exporters/prometheus v0.67.0
	go.opentelemetry.io/otel/sdk/metric v1.45.0
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/client_model v0.6.2 // indirect
	github.com/prometheus/common v0.70.1 // indirect
	github.com/prometheus/otlptranslator v1.0.0 // indirect
	github.com/prometheus/procfs v0.21.1 // indirect
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel v1.45.0 // indirect
	go.opentelemetry.io/otel/metric v1.45.0 // indirect
	go.opentelemetry.io/otel/sdk v1.45.0 // indirect
	go.opentelemetry.io/otel/trace v1.45.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
