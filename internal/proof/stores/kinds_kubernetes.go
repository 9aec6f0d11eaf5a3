//go:build kubernetes

package stores

func init() { Kinds = []string{Kubernetes} }
