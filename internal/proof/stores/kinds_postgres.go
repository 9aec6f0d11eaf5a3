//go:build postgres

package stores

func init() { only(Postgres) }
