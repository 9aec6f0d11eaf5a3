package azureblob

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It looks at the clock, at the policies of
// the container, and at what the account keeps of overwritten blobs, for which the
// credentials must be of the account. With a client of your own it looks at the
// container alone.
func (b *Backend) Inspect(ctx context.Context, _ time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (backends.Inspection, error) {
		return call(ctx, b, func(ctx context.Context) (i backends.Inspection, err error) {
			p, err := b.container.GetProperties(ctx, nil)
			i.Findings = append(i.Findings, b.inspectContainer(is(p.HasImmutabilityPolicy) || is(p.HasLegalHold), status(err) == http.StatusForbidden))
			if err != nil && status(err) != http.StatusForbidden {
				return i, err
			}
			if p.Date != nil {
				i.Clock = *p.Date
			}
			if b.service == nil {
				return i, nil
			}
			settings, err := b.service.GetProperties(ctx, nil)
			if err != nil && status(err) != http.StatusForbidden {
				return i, err
			}
			i.Findings = append(i.Findings, b.inspectAccount(settings, err != nil))
			return i, nil
		})
	})
}

func (b *Backend) inspectContainer(immutable, hidden bool) backends.Finding {
	f := backends.Finding{What: "immutability", Seen: "off"}
	switch {
	case hidden:
		f.Seen = "not shown to these credentials"
		if !b.base.ReadOnly() {
			f.Fix = "use those of an identity or of the account: an immutable container lets a candidate win and never renew"
		}
	case immutable:
		f.Seen, f.Err = "the container has a policy or a legal hold", backends.ErrMisconfigured
		f.Fix, _ = b.classify(errImmutable)
	}
	return f
}

func (b *Backend) inspectAccount(settings service.GetPropertiesResponse, hidden bool) backends.Finding {
	f := backends.Finding{What: "soft delete", Seen: "off"}
	if hidden {
		f.Seen = "not shown to these credentials"
	} else if p := settings.DeleteRetentionPolicy; p != nil && is(p.Enabled) && p.Days != nil {
		f.Seen = fmt.Sprintf("keeps what each renewal overwrites for %d days", *p.Days)
		f.Fix = fmt.Sprintf("to save its cost, in an account for elections only: az storage account blob-service-properties update --account-name %s --enable-delete-retention false", b.account)
	}
	return f
}
