// Package redis keeps election records in Redis or Valkey, one key for each election. It
// is a module of its own. See docs/stores/redis.md for the parameters, permissions, costs,
// settings of the server and limits.
//
// # URLs
//
//	redis://user:password@host:6379/0?prefix=elector:
//	rediss://user:password@host/0?ca=/etc/redis/ca.pem
//
// rediss:// uses TLS and checks the server's certificate. The path is the number of the
// database. The key of an election is the prefix and the election's name. The parameters
// are prefix, durability, readonly, password_file, and with rediss ca, cert, key and
// server_name. [New] takes your client instead of a URL.
//
// # Consistency
//
// Linearizable, on one server without replicas that syncs each write to its disk before it
// acknowledges it: appendonly yes, appendfsync always, no-appendfsync-on-rewrite no. A
// change is one Lua script that compares the record's whole content, which is its version.
// A read is one pipeline of INFO and GET.
//
// With replicas Redis loses acknowledged writes: it acknowledges a write before a replica
// has it, and a failover promotes a replica that lacks it. So do Sentinel and Cluster, and
// WAIT does not mend it. Two candidates then win one term. Opening refuses such a server
// with ErrMisconfigured, and so does each later request: the script looks at the role and
// the replicas in the step that writes. What a server writes to its disk, and whether it
// evicts keys, is looked at on each new connection; a connection lives for a minute.
//
// A server may hide its configuration, as managed ones do: durability=stated is the
// operator's word for what it does not show. durability=lossy accepts a server that loses
// acknowledged writes, for work that may run twice. Then [backends.Description] has the
// reason, each lease says so, guards refuse, and several hosts may be named, of which one
// is the primary. A Cluster is refused even then: its client protocol is another one.
//
// The client library's retries are off, so each write is sent once. If the server does not know the
// script, it has not run it, and the script is sent with its text.
//
// When one process holds many elections through one handle, up to 100 renewals are one
// script, and 100 reads one pipeline.
//
// # Expiry
//
// By the elector's rule alone. No key has a TTL. Watch is a hint: the script publishes the
// name of an election whose leader, value or extensions have changed; waiters also read.
//
// # Fencing
//
// A leader that keeps its data in the same database writes them with [Commit]: one script
// that runs the commands if the record is still of the lease's acquisition, however late
// the write arrives. [Guard] has the condition for a script of your own. Renewals do not
// affect it. Redis rolls nothing back: the commands before one that fails stay.
package redis
