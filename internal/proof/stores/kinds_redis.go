//go:build redis

package stores

func init() { only(Redis) }
