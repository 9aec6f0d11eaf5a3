package peers

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/elector-go/elector/internal/proof/stores"
)

// enoughConnections are for 51 candidates in each of several elections, of which
// each has a pool. PostgreSQL's default is 100.
const enoughConnections = 500

// AdmitMany lets a PostgreSQL server that the tests started take the connections of all
// candidates. Other stores need nothing.
func AdmitMany(ctx context.Context, s *stores.Store) error {
	if s.Kind != stores.Postgres {
		return nil
	}
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	var most int
	err = conn.QueryRow(ctx, "SELECT setting::int FROM pg_settings WHERE name = 'max_connections'").Scan(&most)
	switch {
	case err != nil || most >= enoughConnections:
	case s.PID == 0:
		err = fmt.Errorf("its max_connections is %d; %d are needed, and the server is not ours to be changed", most, enoughConnections)
	default:
		_, err = conn.Exec(ctx, fmt.Sprintf("ALTER SYSTEM SET max_connections = %d", enoughConnections))
	}
	err = errors.Join(err, conn.Close(ctx))
	if err == nil && most < enoughConnections {
		err = s.Restart(ctx)
	}
	if err != nil {
		return fmt.Errorf("making room for the connections of all candidates in %s: %w", s, err)
	}
	return nil
}
