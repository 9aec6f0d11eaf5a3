// Package kubernetes keeps election records in Lease objects of a Kubernetes API
// server, one for each election. It needs no client library: only net/http.
//
// # URLs
//
//	kubernetes:///namespace
//	kubernetes://host:6443/namespace?ca=/etc/elector/ca.crt&token_file=/etc/elector/token
//	kubernetes://127.0.0.1:8001/namespace?tls=false
//
// Without a host the URL is for a pod: the API server's address comes from
// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, the token and the authority
// from the files of the pod's service account, and kubernetes:/// alone means the
// pod's own namespace. With a host name one API server, or the load balancer in
// front of several; the default port is 443. Parameters:
//
//   - ca: a PEM file with the authorities to trust instead of the system's, or the
//     pod's.
//   - token_file: a file with a bearer token. It is read again for each request,
//     because tokens of service accounts are replaced every hour.
//   - cert, key: PEM files of a client certificate, instead of a token. They are
//     read again for each connection.
//   - server_name: the name in the API server's certificate, if it is not the host.
//   - tls: false speaks plain HTTP and sends no token, for kubectl proxy on this
//     machine; true by default.
//
// Any other parameter is refused, and so is a token in the URL. HTTPS_PROXY and
// NO_PROXY in the environment apply. A kubeconfig is not read: run kubectl proxy, or
// use [New].
//
// [New] takes your own HTTP client instead of a URL. With client-go that is
//
//	client, err := rest.HTTPClientFor(config)
//	b := kubernetes.New(client, config.Host, "namespace")
//
// An election's Lease has the election's name if Kubernetes allows it: lower-case
// letters, digits, '-' and '.'. Otherwise the name is made fit and has a part of its
// hash appended: Invoice_Sender becomes invoice-sender--5fne3elm43ouech4. The
// record is JSON in the annotation elector-go.github.io/record. The election's name
// is in elector-go.github.io/election, and the label app.kubernetes.io/managed-by is
// elector.
//
// A Lease without that annotation is foreign, and is left alone: it belongs to
// client-go's leader election, to a node or to another program. Labels, owners and
// annotations that others add to a Lease stay.
//
// # Consistency
//
// Linearizable. A change is one PUT of the whole Lease with the uid and the resource
// version that were read: the API server refuses it if the Lease has changed since,
// or was deleted, or was deleted and created anew. The first record is one POST,
// which fails if there is a Lease. A read is a GET without a resource version, which
// the API server answers from etcd and not from its cache. So any number of API
// servers may share an etcd.
//
// Only the API server's own answer about this very Lease counts as a conflict, or as
// an election without a record: not the 404 of a load balancer.
//
// Every request is sent once, and once more if a server that is ready refuses it with
// 401 or 403: while an API server starts, it refuses everybody. The elector repeats
// and reads back, for every store.
//
// # Expiry
//
// By the elector's rule alone. holderIdentity, leaseDurationSeconds, acquireTime,
// renewTime and leaseTransitions are filled in for people and kubectl, and never
// read.
//
// Watch pushes every change, renewals included, with the record in the event:
// waiters and observers send no requests. It asks for changes first, then reads,
// and leaves out events that are older than what it has read. When the API server
// ends a watch, which it does after 30 to 60 minutes, or reports an error such as 410
// Gone, Watch returns and the elector calls it again.
//
// Calls use HTTP/1.1, with up to 32 connections for each handle: a connection that
// hangs holds up no other. After a call without an answer no idle connection is used
// again. Watches share one connection of HTTP/2, which is pinged after 10 s of
// silence and given up 3 s later. Through kubectl proxy, which speaks HTTP/1.1, each
// watch has a connection of its own.
//
// # Fencing
//
// A controller that is paused after lease.Check can write an object late. The API
// server refuses a late update that has the resource version of an earlier read if
// the object has changed since. That covers neither patches and applies, which have
// no resource version, nor objects that the later leader has not written. For these,
// each leader keeps its token in the annotation [TokenAnnotation] of what it writes,
// and a ValidatingAdmissionPolicy lets no lower token overwrite a higher one:
// docs/kubernetes.md explains both, and examples/kubernetes/fence.yaml has the
// policy.
//
// # Permissions
//
// The smallest role for a candidate of one election; the right to create cannot be
// restricted by name:
//
//	apiVersion: rbac.authorization.k8s.io/v1
//	kind: Role
//	metadata: {name: elector, namespace: NAMESPACE}
//	rules:
//	  - apiGroups: [coordination.k8s.io]
//	    resources: [leases]
//	    verbs: [create]
//	  - apiGroups: [coordination.k8s.io]
//	    resources: [leases]
//	    resourceNames: [invoice-sender]
//	    verbs: [get, update, watch]
//
// Without resourceNames it is for all elections of the namespace. An observer needs
// get and watch, and elector list the verb list on all leases of the namespace. Open
// also reads the API group and asks which rights the account has
// (SelfSubjectRulesReview), which every account may by default; where an authorizer
// cannot list rights, as on some clouds, a missing one shows at the first call.
// examples/kubernetes has the role, its binding and a deployment.
//
// # Limits
//
// The shortest TTL is 1 s, which leaves a request 150 ms. Kubernetes' own goal is
// that 99 % of writes take less than 1 s, so use 10 s or more on a busy cluster. With
// the default of 15 s an election that is held makes one write every 4.5 s; client-go
// with its defaults makes one every 2 s. Each is also an entry in the audit log, if
// that is on.
//
// A control plane of one server takes no writes while it is upgraded, for a minute or
// more. Leases end then, and work goes on afterwards.
//
// An admission webhook that matches leases and fails closed ends elections when it is
// down. Exempt leases.
//
// Do not let client-go, or another program that elects by Leases, use the Lease of an
// election: each side would overwrite the other's holder without reading it.
//
// An operator reads the records with
//
//	kubectl -n NAMESPACE get leases -l app.kubernetes.io/managed-by=elector
//
// No holder is a vacancy. The Lease of a dead leader keeps its holder until another
// candidate takes over. To depose a leader, stop it. Do not delete Leases of
// elections in use: the next winner's token then depends on the clocks alone. Nor
// edit them: the leader takes over what it can, and loses the election if the record
// itself was changed.
//
// Restoring a backup of etcd loses acknowledged writes: stop the candidates first.
// Restore with --bump-revision, or else resource versions are issued a second time,
// and a change that compares one can meet another state.
//
// Tested with kube-apiserver 1.36.3 on etcd 3.7.3.
package kubernetes
