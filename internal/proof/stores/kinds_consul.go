//go:build consul

package stores

func init() { Kinds = []string{Consul} }
