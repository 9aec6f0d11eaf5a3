//go:build etcd

package stores

func init() { only(Etcd) }
