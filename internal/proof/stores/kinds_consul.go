//go:build consul

package stores

func init() { only(Consul) }
