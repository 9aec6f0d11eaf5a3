module github.com/elector-go/elector/backends/redis

go 1.25.0

replace github.com/elector-go/elector => ../..

require (
	github.com/elector-go/elector v0.1.0
	github.com/redis/go-redis/v9 v9.7.3
)

require (
	github.com/cespare/xxhash/v2 v2.2.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
)
