//go:build s3

package stores

func init() { only(S3) }
