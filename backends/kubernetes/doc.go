// Package kubernetes keeps election records in Lease objects of a Kubernetes API
// server, one for each election. It needs no client library: only net/http. See
// docs/stores/kubernetes.md for permissions, costs, settings of the cluster and limits.
//
// # URLs
//
//	kubernetes:///namespace
//	kubernetes://host:6443/namespace?ca=/etc/elector/ca.crt&token_file=/etc/elector/token
//	kubernetes://127.0.0.1:8001/namespace?tls=false
//
// Without a host the URL is for a pod, whose service account it uses; kubernetes:///
// alone means the pod's own namespace. The parameters are ca, token_file, cert, key,
// server_name, tls and readonly. A kubeconfig is not read: run kubectl proxy, or use
// [New], which takes your own HTTP client.
//
// With readonly=true Open lists one Lease, and needs the rights get, list and watch; of
// an account that may not list it asks for its rights instead. See
// [backends.OpenReadOnly].
//
// An election's Lease has the election's name, made fit if Kubernetes does not allow
// it. The record is JSON in the annotation elector-go.github.io/record.
//
// A Lease without that annotation is foreign, and is left alone: it belongs to
// client-go's leader election, to a node or to another program. Labels, owners and
// annotations that others add to a Lease stay.
//
// # Consistency
//
// Linearizable. A change is one PUT of the whole Lease with the uid and the resource
// version that were read: the API server refuses it if the Lease has changed since, or
// was deleted, or was deleted and created anew. The first record is one POST, which
// fails if there is a Lease. A read is a GET without a resource version, which the API
// server answers from etcd and not from its cache. So any number of API servers may
// share an etcd.
//
// Only the API server's own answer about this very Lease counts as a conflict, or as an
// election without a record: not the 404 of a load balancer.
//
// Every request is sent once, and once more if a server that is ready refuses it with
// 401 or 403: while an API server starts, it refuses everybody. The elector repeats and
// reads back, for every store.
//
// # Expiry
//
// By the elector's rule alone. holderIdentity, leaseDurationSeconds, acquireTime,
// renewTime and leaseTransitions are filled in for people and kubectl, and never read.
//
// Watch pushes every change, renewals included, with the record in the event: waiters
// and observers send no requests. It asks for changes first, then reads, and leaves out
// events that are older than what it has read. When the API server ends a watch, which
// it does after 30 to 60 minutes, or reports an error such as 410 Gone, Watch returns
// and the elector calls it again.
//
// # Fencing
//
// A controller that is paused after lease.Check can write an object late. The API
// server refuses a late update that has the resource version of an earlier read if the
// object has changed since. That covers neither patches and applies, which have no
// resource version, nor objects that the later leader has not written. For these, each
// leader keeps its token in the annotation [TokenAnnotation] of what it writes, and a
// ValidatingAdmissionPolicy lets no lower token overwrite a higher one:
// docs/kubernetes.md explains both, and examples/kubernetes/fence.yaml has the policy.
package kubernetes
