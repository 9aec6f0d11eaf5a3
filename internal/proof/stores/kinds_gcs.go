//go:build gcs

package stores

func init() { only(GCS) }
