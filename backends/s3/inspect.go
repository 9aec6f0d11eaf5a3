package s3

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// Inspect implements [backends.Inspector]. It looks at the clock, at what the bucket
// keeps of overwritten objects, and at its lifecycle rules, the latter two with the
// permissions s3:GetBucketVersioning and s3:GetLifecycleConfiguration.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		listed, err := b.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.bucket, Prefix: &b.prefix, MaxKeys: aws.Int32(1)}, once)
		if err != nil {
			return i, b.failed(ctx, err)
		}
		i.Clock, _ = awsmiddleware.GetServerTime(listed.ResultMetadata)
		writes := backends.Finding{What: "conditional writes", Seen: "kept"}
		switch {
		case b.base.ReadOnly():
			writes.Seen = "not probed, because the bucket was opened for reading alone"
		case !b.proven.Load():
			writes.Seen, writes.Fix = "not probed: these credentials may not write", "to lead and not only to observe, allow s3:PutObject on the prefix"
		}
		i.Findings = append(i.Findings, writes)
		if v, err := b.client.GetBucketVersioning(ctx, &s3.GetBucketVersioningInput{Bucket: &b.bucket}, once); err == nil {
			versions := backends.Finding{What: "object versioning", Seen: "off"}
			if v.Status == types.BucketVersioningStatusEnabled {
				versions.Seen = "keeps what each renewal overwrites"
				versions.Fix = "add a lifecycle rule that expires noncurrent versions of the prefix " + b.prefix + " after a day, or use a bucket without versioning"
			}
			i.Findings = append(i.Findings, versions)
		}
		l, err := b.client.GetBucketLifecycleConfiguration(ctx, &s3.GetBucketLifecycleConfigurationInput{Bucket: &b.bucket}, once)
		if err == nil || awsclient.Code(err) == "NoSuchLifecycleConfiguration" {
			rules := backends.Finding{What: "lifecycle rules", Seen: "none that deletes or archives records"}
			if err == nil && slices.ContainsFunc(l.Rules, b.harms) {
				rules.Seen = "one can delete or archive records"
				rules.Fix = "keep the rule off the prefix " + b.prefix + ", or use another bucket"
			}
			i.Findings = append(i.Findings, rules)
		}
		return i, nil
	})
}

// harms reports whether a lifecycle rule can delete or archive the present state of a
// record. Records have no tags and are small.
func (b *Backend) harms(r types.LifecycleRule) bool {
	if r.Status != types.ExpirationStatusEnabled || r.Expiration == nil && len(r.Transitions) == 0 {
		return false
	}
	if e := r.Expiration; e != nil && e.Days == nil && e.Date == nil && len(r.Transitions) == 0 {
		return false // it removes delete markers only
	}
	prefix := aws.ToString(r.Prefix) //lint:ignore SA1019 older rules have it
	if f := r.Filter; f != nil {
		if f.Tag != nil || f.And != nil && len(f.And.Tags) > 0 {
			return false
		}
		prefix = aws.ToString(f.Prefix)
		if f.And != nil {
			prefix = aws.ToString(f.And.Prefix)
		}
	}
	return strings.HasPrefix(b.prefix, prefix) || strings.HasPrefix(prefix, b.prefix)
}
