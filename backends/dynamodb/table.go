package dynamodb

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/awsclient"
)

// prepare makes sure that the table exists, has the right key, and can elect a
// single leader. It creates a missing table if it may. Only these requests
// follow the client's policy of retries.
func (b *Backend) prepare(ctx context.Context, o Options) error {
	const doing = "looking for the table"
	answer, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &b.table})
	missing := awsclient.Code(err) == notFound
	if o.Create && (missing || err == nil && answer.Table != nil && answer.Table.TableStatus == types.TableStatusCreating) {
		if answer, err = b.create(ctx, missing); err != nil {
			return err
		}
	}
	switch {
	case missing && !o.Create:
		return fmt.Errorf("%s: %w: there is no table %s in region %s of this account; if that is the right place, create=true in the URL, or Create in the options of New, creates it, or an administrator can run: %s: %w",
			doing, backends.ErrMisconfigured, b.table, b.region, b.createCommand(), awsclient.FirstLine(err))
	case err != nil:
		return b.base.Explain(ctx, doing, b.failed(ctx, err))
	}
	t := answer.Table
	if t == nil {
		return fmt.Errorf("%s: %w: the answer has no table; check the endpoint", doing, backends.ErrMisconfigured)
	}
	switch t.TableStatus {
	case types.TableStatusActive, types.TableStatusUpdating:
	case types.TableStatusCreating, types.TableStatusDeleting:
		return fmt.Errorf("%s: %w: the table's status is %s; try again when that is over", doing, backends.ErrUnavailable, t.TableStatus)
	default:
		return b.unfit("its status is %s", t.TableStatus)
	}
	if err := b.checkKey(t); err != nil {
		return err
	}
	if !o.SingleRegion {
		if err := b.checkRegions(ctx, t); err != nil {
			return err
		}
	}
	return b.checkTimeToLive(ctx)
}

// checkReading makes sure that the table exists and can be read. No election has this
// item.
func (b *Backend) checkReading(ctx context.Context) error {
	_, err := b.client.GetItem(ctx, b.item(".absent"))
	if awsclient.Code(err) == notFound {
		return fmt.Errorf("%w: there is no table %s in region %s of this account, so no election has ever used it; check the table and the region in the URL, and the account (aws sts get-caller-identity): %w",
			backends.ErrMisconfigured, b.table, b.region, awsclient.FirstLine(err))
	}
	return b.failed(ctx, err)
}

func (b *Backend) checkKey(t *types.TableDescription) error {
	kinds := map[string]types.ScalarAttributeType{}
	for _, d := range t.AttributeDefinitions {
		kinds[aws.ToString(d.AttributeName)] = d.AttributeType
	}
	has := ""
	for _, k := range t.KeySchema {
		name := aws.ToString(k.AttributeName)
		has += fmt.Sprintf(" %s (%s, %s)", name, k.KeyType, kinds[name])
	}
	if want := fmt.Sprintf(" %s (%s, %s)", keyAttribute, types.KeyTypeHash, types.ScalarAttributeTypeS); has != want {
		return b.unfit("its key is%s, not%s, and a table's key cannot be changed: name another table, and create it with: %s", has, want, b.createCommand())
	}
	return nil
}

// checkRegions refuses a table that accepts conflicting conditional writes in
// two regions.
func (b *Backend) checkRegions(ctx context.Context, t *types.TableDescription) error {
	global := len(t.Replicas) > 0 || t.GlobalTableVersion != nil
	if global && t.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
		return nil
	}
	if s := t.StreamSpecification; !global && s != nil && s.StreamViewType == types.StreamViewTypeNewAndOldImages {
		// A global table of version 2017 has such a stream, and its description
		// does not show that it is global.
		_, err := b.client.DescribeGlobalTable(ctx, &dynamodb.DescribeGlobalTableInput{GlobalTableName: &b.table})
		switch c := awsclient.Code(err); {
		case err == nil:
			global = true
		case c != "GlobalTableNotFoundException" && c != unknownOperation:
			return b.base.Explain(ctx, "asking whether the table is a global one, because it has a stream", b.failed(ctx, err))
		}
	}
	if global {
		return b.unfit("it is an eventually consistent global table, which accepts conflicting writes in two regions, and so two leaders; use a table of one region or with multi-region strong consistency, or promise with single_region=true that every process names this region")
	}
	return nil
}

func (b *Backend) checkTimeToLive(ctx context.Context) error {
	answer, err := b.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &b.table})
	if awsclient.Code(err) == unknownOperation { // an emulator without time to live deletes nothing
		return nil
	}
	if err != nil {
		return b.base.Explain(ctx, "asking for the table's time to live", b.failed(ctx, err))
	}
	d := answer.TimeToLiveDescription
	if d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		name := aws.ToString(d.AttributeName)
		return b.unfit("time to live is on, for attribute %q, and can delete records; switch it off: aws dynamodb update-time-to-live --region %s --table-name %s --time-to-live-specification Enabled=false,AttributeName=%s", name, b.region, b.table, name)
	}
	return nil
}

// create creates the table if it is missing, and blocks until it is active.
// Another process may be creating it at the same time.
func (b *Backend) create(ctx context.Context, missing bool) (*dynamodb.DescribeTableOutput, error) {
	if missing {
		_, err := b.client.CreateTable(ctx, &dynamodb.CreateTableInput{
			TableName:            &b.table,
			BillingMode:          types.BillingModePayPerRequest,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(keyAttribute), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(keyAttribute), KeyType: types.KeyTypeHash}},
		})
		switch {
		case err == nil, awsclient.Code(err) == "ResourceInUseException":
		case awsclient.Code(err) == "AccessDeniedException":
			return nil, fmt.Errorf("%w: there is no table %s, and these credentials may not create it; an administrator can run: %s: %w",
				backends.ErrMisconfigured, b.table, b.createCommand(), awsclient.FirstLine(err))
		default:
			return nil, b.base.Explain(ctx, "creating the table", b.failed(ctx, err))
		}
	}
	deadline, _ := ctx.Deadline()
	quick := func(o *dynamodb.TableExistsWaiterOptions) {
		o.MinDelay, o.MaxDelay = 200*time.Millisecond, 5*time.Second
	}
	answer, err := dynamodb.NewTableExistsWaiter(b.client, quick).
		WaitForOutput(ctx, &dynamodb.DescribeTableInput{TableName: &b.table}, max(time.Until(deadline), time.Second))
	if err != nil {
		return nil, b.base.Explain(ctx, "waiting for the new table", b.failed(ctx, err))
	}
	return answer, nil
}

// createCommand is what an administrator can run.
func (b *Backend) createCommand() string {
	command := fmt.Sprintf("aws dynamodb create-table --region %s --table-name %s --billing-mode PAY_PER_REQUEST --attribute-definitions AttributeName=%s,AttributeType=S --key-schema AttributeName=%s,KeyType=HASH",
		b.region, b.table, keyAttribute, keyAttribute)
	if b.endpoint != "" {
		command += " --endpoint-url " + b.endpoint
	}
	return command
}

func (b *Backend) unfit(format string, args ...any) error {
	return fmt.Errorf("%w: table %s cannot be used: %s", backends.ErrMisconfigured, b.table, fmt.Sprintf(format, args...))
}
