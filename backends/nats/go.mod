module github.com/elector-go/elector/backends/nats

go 1.25.0

replace github.com/elector-go/elector => ../..

require (
	github.com/elector-go/elector v0.1.0
	github.com/nats-io/nats.go v1.53.1
	github.com/nats-io/nkeys v0.4.15
)

require (
	github.com/klauspost/compress v1.18.5 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.49.0 // indirect
	golang.org/x/sys v0.42.0 // indirect
)
