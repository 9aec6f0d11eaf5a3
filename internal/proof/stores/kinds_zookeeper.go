//go:build zookeeper

package stores

func init() { only(ZooKeeper) }
