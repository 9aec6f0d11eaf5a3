//go:build dynamodb

package stores

func init() { only(DynamoDB) }
