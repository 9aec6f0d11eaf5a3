// Package modules imports the backends that are modules of their own, for programs of
// the root module, which cannot.
package modules

import (
	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
)
