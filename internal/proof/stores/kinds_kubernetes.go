//go:build kubernetes

package stores

func init() { only(Kubernetes) }
