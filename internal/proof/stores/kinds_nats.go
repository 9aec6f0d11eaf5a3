//go:build nats

package stores

func init() { only(NATS) }
