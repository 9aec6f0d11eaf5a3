// Command elector runs commands under an election, and shows who leads.
//
//	elector run NAME -- command   run a command while this machine leads
//	elector leader NAME           print who leads
//	elector observe NAME          print each change of leader
//	elector list                  print all elections of the store
//	elector doctor                find what is wrong with the store
//	elector serve NAME...         serve who leads, as a page and as JSON
//
// Each command explains itself: elector help run.
package main

import (
	"os"

	"github.com/elector-go/elector/cmd/elector/internal/cli"

	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/memory"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
)

func main() { os.Exit(cli.Main(os.Args[1:])) }
