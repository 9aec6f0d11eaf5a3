package stores

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// A manner is how a store that the tests start is run.
type manner int

const (
	// quick is for tests: a store that loses nothing if its process is killed,
	// but does not sync, and whose heartbeats and ticks are short.
	quick manner = iota

	// durable is for measurements: a store as its users run it. It syncs each
	// change to the disk before it acknowledges it, with its default heartbeats
	// and ticks.
	durable
)

// StartDurable is [Start] for measurements: a store that it starts then syncs each
// change to the disk before it acknowledges it, and has its default heartbeats
// and ticks. Its Settings say so. An emulator stays what it is. A store from the
// environment is as its owner has set it.
//
// It fails where the folder for temporary files is kept in memory: to sync costs
// nothing there.
func StartDurable(ctx context.Context, kind string) (*Store, error) {
	if inMemory(os.TempDir()) {
		return nil, fmt.Errorf("%s is kept in memory, where no store is durable; set TMPDIR to a folder on a disk", os.TempDir())
	}
	s, err := start(ctx, kind, durable)
	if err != nil {
		return nil, err
	}
	s.Settings = settings[kind]
	if s.server == nil {
		s.Settings = "not started for the measurement; its settings are not known"
	}
	if s.Settings == "" {
		return nil, errors.Join(fmt.Errorf("no settings of %s are known with which it is durable", kind), s.Stop())
	}
	return s, nil
}

// settings are those of durable stores, for people.
var settings = map[string]string{
	Etcd:      "one member; synced to the disk; heartbeat 100 ms, election timeout 1 s, the defaults; compacted to the last 5 minutes",
	ZooKeeper: "one server; synced to the disk (forceSync); tickTime 2 s, as in its sample configuration; minSessionTimeout 1 s, so that a session can be as short as the TTL",
	Postgres:  "synced to the disk (fsync, full_page_writes and synchronous_commit on), shared_buffers 128 MB, the defaults; max_connections raised",
	DynamoDB:  "an emulator, which does not sync",
	GCS:       "an emulator, which does not sync",
	AzureBlob: "an emulator, which does not sync",

	Consul:     "one server; synced to the disk; raft_multiplier 1, as recommended for production",
	Redis:      "one server; synced to the disk (appendonly yes, appendfsync always)",
	S3:         "a fake, which syncs each write to its file",
	Kubernetes: "one API server; one member of etcd, which syncs to the disk; the defaults but for priority and fairness, which is off",

	NATS: "one server; synced to the disk (sync_interval always)",

	MySQL: "MariaDB; synced to the disk (innodb_flush_log_at_trx_commit 1, the default), no binary log; innodb_buffer_pool_size 32 MB",
}
