// Package chaos holds elections on real stores while it breaks them.
//
// A [Campaign] starts a store at each place, three candidates as processes of
// their own, each behind a proxy of its own, and a resource that takes writes
// and refuses stale tokens. On etcd and PostgreSQL leaders also write to data in the
// store, through its guard, and most of these writes come long after their Check.
// Then one fault after another strikes: of the network
// between a candidate and the store, of a process, of the store, of the record
// itself, which is deleted, rolled back, spoiled, or edited by hand. After each
// it waits until a leader writes again. Everybody tells what it believes, on one
// clock of the machine; package checker judges that, and package report draws it.
//
// In one of several rounds the candidates are members of a group instead. Each of its
// partitions is an election for the checker and the report, and the records of the group
// are changed by hand: seats, the plan and partitions.
//
// The lot of the faults follows from a seed, their timing does not: a campaign
// cannot be repeated exactly. That is why the history of a violation is kept as
// a file, from which the checker finds it again.
//
// What a process believes is known from the events that it has told. A lease
// that was won and whose process was killed before it could tell is seen in the
// record only.
package chaos
