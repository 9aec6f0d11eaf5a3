package nats

import (
	"context"
	"fmt"
	"time"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It looks at the stream's settings and
// replicas, at its limits, and at the clock.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		s, err := b.info(ctx, struct{}{})
		if err != nil {
			return i, err
		}
		i.Clock = s.Time
		i.Findings = []backends.Finding{b.inspectConfig(s.Config), inspectReplicas(s), inspectFailover(s, ttl), inspectLimits(s), {
			What: "sync",
			Seen: "not shown to clients: unless the servers have sync_interval: always, a crash of their machines loses the writes of two minutes",
		}}
		return i, nil
	})
}

func (b *Backend) inspectConfig(c config) backends.Finding {
	f := backends.Finding{What: "bucket", Seen: fmt.Sprintf("%s, storage %s, history %d", b.bucket, c.Storage, c.MaxPerKey)}
	if err := b.suitable(c); err != nil {
		f.Fix, f.Err = err.Error(), backends.ErrMisconfigured
	}
	return f
}

func inspectReplicas(s information) backends.Finding {
	n := s.Config.Replicas
	f := backends.Finding{What: "replicas", Seen: fmt.Sprintf("%d, of which %d can fail", n, (n-1)/2)}
	if s.Cluster != nil {
		for _, r := range s.Cluster.Replicas {
			if r.Offline || !r.Current {
				f.Seen += fmt.Sprintf("; %.60s is behind or down", r.Name)
				f.Fix = "bring all replicas up (nats stream info)"
			}
		}
	}
	if n < 3 {
		f.Fix = "keep the bucket on three servers (nats stream edit --replicas=3): while its only one is down no process leads, and what that loses is lost"
	}
	return f
}

// failover is the longest time in which the replicas of a stream notice that their leader
// is gone, and elect another one.
const failover = 9 * time.Second

func inspectFailover(s information, ttl time.Duration) backends.Finding {
	f := backends.Finding{What: "failover", Seen: "none: there are no other replicas"}
	if s.Config.Replicas > 1 {
		f.Seen = fmt.Sprintf("another replica leads within %v", failover)
		if ttl < failover*5/3 { // the last renewal may have been some time before
			f.Fix = fmt.Sprintf("leases of %v may end meanwhile: use a TTL of %v", ttl, failover*5/3)
		}
	}
	return f
}

func inspectLimits(s information) backends.Finding {
	f := backends.Finding{What: "limits", Seen: "none"}
	near := func(what string, used, limit int64) {
		if limit > 0 {
			f.Seen = fmt.Sprintf("%d of %d %s are used", used, limit, what)
			if used > limit/10*8 {
				f.Fix = "raise the stream's limits: when they are reached no process can lead"
			}
		}
	}
	near("bytes", s.State.Bytes, s.Config.MaxBytes)
	near("messages", s.State.Messages, s.Config.MaxMessages)
	return f
}
