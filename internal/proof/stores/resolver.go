package stores

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The kinds of stores that Start knows.
const (
	Etcd      = "etcd"
	Postgres  = "postgres"
	ZooKeeper = "zookeeper"
	DynamoDB  = "dynamodb"
	GCS       = "gcs"

	AzureBlob  = "azureblob"
	Consul     = "consul"
	Kubernetes = "kubernetes" // an API server and its etcd
	MySQL      = "mysql"      // played by MariaDB
	NATS       = "nats"
	Redis      = "redis"
	S3         = "s3"
)

// Kinds are those that are tested: by default those whose clients the root module has
// and that any machine has in a minute. With build tags of their names they are those
// that were named.
var Kinds = []string{Etcd, ZooKeeper, Postgres, DynamoDB, GCS}

var named bool // a build tag has named kinds

// only adds a kind that a build tag names.
func only(kind string) {
	if !named {
		named, Kinds = true, nil
	}
	Kinds = append(Kinds, kind)
}

// All returns all kinds, sorted.
func All() []string { return slices.Sorted(maps.Keys(programs)) }

// Choose returns the kinds that were named, all if none was.
func Choose(named []string) ([]string, error) {
	for _, kind := range named {
		if err := known(kind); err != nil {
			return nil, err
		}
	}
	if len(named) == 0 {
		return Kinds, nil
	}
	return named, nil
}

func known(kind string) error {
	if programs[kind] == nil {
		return fmt.Errorf("unknown kind of store %q; known are %s", kind, strings.Join(All(), ", "))
	}
	return nil
}

// variables name the environment's addresses of stores, as URLs.
var variables = map[string]string{
	Etcd:      "ELECTOR_TEST_ETCD",
	Postgres:  "ELECTOR_TEST_POSTGRES",
	ZooKeeper: "ELECTOR_TEST_ZOOKEEPER",
	DynamoDB:  "ELECTOR_TEST_DYNAMODB",
	GCS:       "ELECTOR_TEST_GCS",
	AzureBlob: "ELECTOR_TEST_AZUREBLOB",
	MySQL:     "ELECTOR_TEST_MYSQL",
	NATS:      "ELECTOR_TEST_NATS",

	Consul:     "ELECTOR_TEST_CONSUL",
	Kubernetes: "ELECTOR_TEST_KUBERNETES",
	Redis:      "ELECTOR_TEST_REDIS",
	S3:         "ELECTOR_TEST_S3",
}

// A method is one way of getting a store.
type method struct {
	name string
	try  func(ctx context.Context, kind string) (*Store, error)
}

const (
	byEnvironment = "environment"
	byDocker      = "docker"
	byProcess     = "local process"
)

// methods are tried in this order.
func methods(m manner) []method {
	return []method{
		{byEnvironment, environment},
		{byDocker, func(ctx context.Context, kind string) (*Store, error) { return docker(ctx, kind, m) }},
		{byProcess, func(ctx context.Context, kind string) (*Store, error) { return programs[kind](ctx, m) }},
	}
}

// Start returns a store of the kind, one of the constants, that answers. It
// blocks until then, or until ctx ends, which bounds the start and not the life
// of the store: call Stop. The error has the reason of every method tried.
//
// An address in the environment, ELECTOR_TEST_ETCD and the like, is an order:
// if nothing listens there, nothing else is tried. ELECTOR_TEST_METHOD=docker
// and ELECTOR_TEST_METHOD=process are orders too, for all kinds.
func Start(ctx context.Context, kind string) (*Store, error) { return start(ctx, kind, quick) }

func start(ctx context.Context, kind string, m manner) (*Store, error) {
	if err := known(kind); err != nil {
		return nil, err
	}
	if os.Getenv(variables[kind]) != "" && os.Getenv(methodVariable) == "" {
		return first(ctx, kind, methods(m)[:1])
	}
	return first(ctx, kind, methods(m))
}

// methodVariable allows one method only: an environment variable.
const methodVariable = "ELECTOR_TEST_METHOD"

// first returns what the first of the methods gives that works and is allowed.
func first(ctx context.Context, kind string, methods []method) (*Store, error) {
	only := map[string]string{"docker": byDocker, "process": byProcess}
	forced := os.Getenv(methodVariable)
	if forced != "" && only[forced] == "" {
		return nil, fmt.Errorf("%s is %q; known are docker and process", methodVariable, forced)
	}
	var reasons []error
	note := ""
	for _, m := range methods {
		if forced != "" && m.name != only[forced] {
			continue
		}
		s, err := m.try(ctx, kind)
		if err == nil {
			s.How += note
			return s, nil
		}
		err = fmt.Errorf("%s: %w", m.name, err)
		reasons = append(reasons, err)
		if m.name == byDocker {
			line, _, _ := strings.Cut(err.Error(), "\n")
			note = "; not by " + line
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("no %s to test with:\n%w", kind, errors.Join(reasons...))
}

// programs start a store as a program of this machine.
var programs = map[string]func(context.Context, manner) (*Store, error){
	Etcd:       startEtcd,
	Postgres:   startPostgres,
	ZooKeeper:  startZooKeeper,
	DynamoDB:   func(ctx context.Context, _ manner) (*Store, error) { return startDynamoDB(ctx) },
	GCS:        func(ctx context.Context, _ manner) (*Store, error) { return startGCS(ctx) },
	AzureBlob:  func(ctx context.Context, _ manner) (*Store, error) { return startAzureBlob(ctx) },
	Consul:     func(ctx context.Context, _ manner) (*Store, error) { return startConsul(ctx) },
	Kubernetes: startKubernetes,
	Redis:      func(ctx context.Context, _ manner) (*Store, error) { return startRedisStore(ctx) },
	S3:         func(ctx context.Context, _ manner) (*Store, error) { return startS3(ctx) },
	MySQL:      startMySQL,
	NATS:       func(ctx context.Context, _ manner) (*Store, error) { return startNATS(ctx) },
}

// StartLocal starts a store as a local process, whatever the environment says:
// one that shall be broken must be ours.
func StartLocal(ctx context.Context, kind string) (*Store, error) { return programs[kind](ctx, quick) }
