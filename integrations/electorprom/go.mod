module github.com/elector-go/elector/integrations/electorprom

go 1.25.0

replace github.com/elector-go/elector => ../..

require (
	github.com/elector-go/elector v0.1.0
	github.com/prometheus/client_golang v1.21.1
	github.com/prometheus/client_model v0.6.1
)

require (
	github.com/beorn7/perks v1.0.1 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/kylelemons/godebug v1.1.0 // indirect
	github.com/munnerz/goautoneg v0.0.0-20191010083416-a7dc8b61c822 // indirect
	github.com/prometheus/common v0.62.0 // indirect
	github.com/prometheus/procfs v0.15.1 // indirect
	golang.org/x/sys v0.32.0 // indirect
	google.golang.org/protobuf v1.36.1 // indirect
)
