package gcs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/api/storage/v1"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It looks at what the bucket keeps of
// overwritten objects, at its lifecycle rules and storage class, and at the clock.
// It needs the permission storage.buckets.get. With a client of your own it finds
// nothing.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		if b.service == nil {
			return i, nil
		}
		a, err := call(ctx, b, func() (*storage.Bucket, error) { return b.service.Buckets.Get(b.name).Context(ctx).Do() })
		if code(err) == http.StatusForbidden && !throttled(err) {
			hidden := backends.Finding{What: "bucket settings", Seen: "not shown to this account"}
			if !b.base.ReadOnly() {
				hidden.Fix = "grant roles/storage.legacyBucketReader on the bucket: a retention policy, for example, lets a candidate win and never renew"
			}
			i.Findings = []backends.Finding{hidden}
			return i, nil
		}
		if err != nil {
			return i, err
		}
		i.Clock, _ = http.ParseTime(a.Header.Get("Date"))
		i.Findings = b.inspectBucket(a)
		return i, nil
	})
}

func (b *Backend) inspectBucket(a *storage.Bucket) []backends.Finding {
	soft := backends.Finding{What: "soft delete", Seen: "off"}
	if p := a.SoftDeletePolicy; p != nil && p.RetentionDurationSeconds > 0 {
		soft.Seen = fmt.Sprintf("keeps what each renewal overwrites for %v", time.Duration(p.RetentionDurationSeconds)*time.Second)
		soft.Fix = fmt.Sprintf("to save its cost, in a bucket for elections only: gcloud storage buckets update gs://%s --clear-soft-delete", b.name)
	}
	versions := backends.Finding{What: "object versioning", Seen: "off"}
	if a.Versioning != nil && a.Versioning.Enabled {
		versions.Seen = "keeps what each renewal overwrites, for good"
		versions.Fix = fmt.Sprintf("gcloud storage buckets update gs://%s --no-versioning", b.name)
	}
	class := backends.Finding{What: "storage class", Seen: a.StorageClass}
	if c := a.StorageClass; c != "" && c != "STANDARD" && c != "MULTI_REGIONAL" && c != "REGIONAL" {
		class.Fix = "use a bucket of class STANDARD: this one charges each renewal for a month or more"
	}
	rules := backends.Finding{What: "lifecycle rules", Seen: "none that deletes records"}
	if a.Lifecycle != nil && slices.ContainsFunc(a.Lifecycle.Rule, b.deletes) {
		rules.Seen = "one can delete records"
		rules.Fix = fmt.Sprintf("keep the rule off the prefix %s, or use another bucket", b.prefix)
	}
	return []backends.Finding{soft, versions, class, rules}
}

// deletes reports whether a lifecycle rule can delete the present state of a
// record.
func (b *Backend) deletes(r *storage.BucketLifecycleRule) bool {
	if r.Action == nil || r.Action.Type != "Delete" {
		return false
	}
	c := r.Condition
	if c == nil || len(c.MatchesPrefix) == 0 {
		return c == nil || c.IsLive == nil || *c.IsLive
	}
	return slices.ContainsFunc(c.MatchesPrefix, func(p string) bool { return strings.HasPrefix(b.prefix, p) || strings.HasPrefix(p, b.prefix) })
}
