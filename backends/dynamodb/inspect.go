package dynamodb

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// Inspect implements [backends.Inspector]. It looks at the table's capacity and at
// the clock; Open has looked at the rest. A backend that was opened for reading alone
// may lack the right to describe the table: Inspect reports that.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		answer, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &b.table}, once)
		if code := awsclient.Code(err); b.base.ReadOnly() && (code == "AccessDeniedException" || code == "AccessDenied") {
			i.Findings = []backends.Finding{{What: "capacity", Seen: "not shown: these credentials have no dynamodb:DescribeTable"}}
			return i, nil
		}
		if err != nil {
			return i, b.failed(ctx, err)
		}
		i.Clock, _ = middleware.GetServerTime(answer.ResultMetadata)
		capacity := backends.Finding{What: "capacity", Seen: "billed on demand"}
		if p := answer.Table.ProvisionedThroughput; p != nil && aws.ToInt64(p.WriteCapacityUnits) > 0 {
			// A leader renews a little more than three times in each TTL.
			elections := float64(*p.WriteCapacityUnits) * ttl.Seconds() * 0.3
			capacity.Seen = fmt.Sprintf("%d write units are provisioned, enough for %.0f elections with a TTL of %v", *p.WriteCapacityUnits, elections, ttl)
			if elections < 1 {
				capacity.Fix = "provision more write units, or bill the table on demand: aws dynamodb update-table --billing-mode PAY_PER_REQUEST"
			}
		}
		i.Findings = []backends.Finding{capacity}
		return i, nil
	})
}
