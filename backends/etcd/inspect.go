package etcd

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/elector-go/elector/backends"
)

// defaultQuota is the servers' own --quota-backend-bytes. Since 3.6 they report
// what it is.
const defaultQuota = 2 << 30

// Inspect implements [backends.Inspector]. It looks at the compaction of revisions,
// and at each server in the URL: whether it answers, its cluster, its alarms and its
// quota.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (backends.Inspection, error) {
		compaction, err := b.inspectCompaction(ctx)
		if err != nil {
			return backends.Inspection{}, err
		}
		findings := []backends.Finding{compaction}
		members, err := b.client.MemberList(ctx)
		if err == nil && slices.ContainsFunc(members.Members, func(m *etcdserverpb.Member) bool { return m.ID == 0 }) {
			findings = append(findings, backends.Finding{What: "proxy", Seen: "an etcd grpc-proxy answers, not the members themselves",
				Fix: "name the members in the URL: a proxy is one more thing that can fail, and hides which of them answer"})
		} else if err == nil && len(members.Members) > len(b.client.Endpoints()) { // only root may see them where passwords are on
			findings = append(findings, backends.Finding{What: "servers", Seen: fmt.Sprintf("the URL names %d of the cluster's %d members", len(b.client.Endpoints()), len(members.Members)),
				Fix: "name all of them: while the ones in the URL are down, no process can lead although the cluster works"})
		}
		clusters := map[uint64]string{} // an endpoint of each
		for _, endpoint := range b.client.Endpoints() {
			of, found := b.inspectServer(ctx, endpoint)
			if findings = append(findings, found...); of != 0 {
				clusters[of] = endpoint
			}
		}
		if len(clusters) > 1 {
			findings = append(findings, backends.Finding{What: "clusters", Seen: fmt.Sprintf("the servers in the URL are of %d clusters: %s", len(clusters), strings.Join(slices.Sorted(maps.Values(clusters)), ", ")),
				Fix: "name the members of one cluster: candidates that reach different ones lead at the same time", Err: backends.ErrMisconfigured})
		}
		return backends.Inspection{Findings: findings}, nil
	})
}

// inspectCompaction reads at the first revision, which exists until the first
// compaction.
func (b *Backend) inspectCompaction(ctx context.Context) (backends.Finding, error) {
	f := backends.Finding{What: "compaction", Seen: "old revisions were compacted"}
	answer, err := b.client.Get(ctx, b.prefix, clientv3.WithRev(1), clientv3.WithKeysOnly())
	switch {
	case err == nil:
		f.Seen = fmt.Sprintf("nothing was ever compacted: all %d revisions are kept", answer.Header.Revision)
		f.Fix = "unless the cluster is new, start the servers with --auto-compaction-mode=periodic --auto-compaction-retention=5m, or the database reaches its quota and etcd refuses all writes"
	case !is(err, rpctypes.ErrCompacted):
		return f, err
	}
	return f, nil
}

// inspectServer also returns the id of the server's cluster, 0 if it does not answer.
func (b *Backend) inspectServer(ctx context.Context, endpoint string) (cluster uint64, findings []backends.Finding) {
	_, host, _ := strings.Cut(endpoint, "://")
	// One server that does not answer must not hide the others.
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	status, err := b.client.Status(ctx, endpoint)
	if err != nil {
		return 0, []backends.Finding{{What: "server " + host, Seen: fmt.Sprintf("no answer: %v", err), Fix: "start the server, or take it out of the URL"}}
	}
	server := backends.Finding{What: "server " + host, Seen: "version " + status.Version}
	quota := backends.Finding{What: "quota of " + host}
	switch {
	case status.Leader == 0:
		server.Seen += ", which has no leader"
		server.Fix, server.Err = "bring a majority of the members up", backends.ErrUnavailable
	case len(status.Errors) > 0:
		server.Seen += fmt.Sprintf(", which reports %s", strings.Join(status.Errors, "; "))
		server.Fix, server.Err = "see etcdctl alarm list; etcd refuses writes after NOSPACE until etcdctl compact, then defrag, then alarm disarm", backends.ErrReadOnly
	case status.IsLearner:
		server.Seen += ", a learner, which refuses requests"
		server.Fix = "promote it (etcdctl member promote), or take it out of the URL"
	}
	limit, is := int64(defaultQuota), "the default quota"
	// Clients before 3.6 have no such field.
	if s, ok := any((*etcdserverpb.StatusResponse)(status)).(interface{ GetDbSizeQuota() int64 }); ok && s.GetDbSizeQuota() > 0 {
		limit, is = s.GetDbSizeQuota(), "its quota"
	}
	quota.Seen = fmt.Sprintf("%d MB of %s of %d MB", status.DbSize>>20, is, limit>>20)
	if status.DbSize > limit/4*3 {
		quota.Fix = "etcd refuses all writes when the quota is reached: compact (etcdctl compact, and auto-compaction), then run etcdctl defrag, or raise --quota-backend-bytes"
	}
	return status.Header.GetClusterId(), []backends.Finding{server, quota}
}
