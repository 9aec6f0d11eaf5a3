package etcd
import (_ "go.etcd.io/etcd/client/v3")
