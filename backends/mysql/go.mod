module github.com/elector-go/elector/backends/mysql

go 1.25.0

replace github.com/elector-go/elector => ../..

require (
	github.com/elector-go/elector v0.1.0
	github.com/go-sql-driver/mysql v1.8.1
)

require filippo.io/edwards25519 v1.1.0 // indirect
