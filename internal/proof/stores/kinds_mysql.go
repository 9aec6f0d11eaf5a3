//go:build mysql

package stores

func init() { only(MySQL) }
