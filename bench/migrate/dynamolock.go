package migrate

import (
	"context"
	"time"

	"cirello.io/dynamolock/v2"
)

// UnderDynamoLock holds a lock of dynamolock, whose lease is 20 s by default.
func UnderDynamoLock(ctx context.Context, client *dynamolock.Client, key string, lead func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lock, err := client.AcquireLockWithContext(ctx, key,
		dynamolock.WithAdditionalTimeToWaitForLock(24*time.Hour),
		dynamolock.WithSessionMonitor(15*time.Second, cancel)) // without a heartbeat for 15 s
	if err != nil {
		return err
	}
	defer lock.Close() // after lead has returned
	return lead(ctx)
}
