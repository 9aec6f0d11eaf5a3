#!/bin/sh
# As the entry point of the official image, as far as tests need it: a new
# database at the first start, and then the command.
set -e
if [ "$POSTGRES_HOST_AUTH_METHOD" != trust ]; then
	echo "this stand-in for the official image knows POSTGRES_HOST_AUTH_METHOD=trust only" >&2
	exit 1
fi
if ! [ -s "$PGDATA/PG_VERSION" ]; then
	initdb -D "$PGDATA" -U "${POSTGRES_USER:-postgres}" -A trust $POSTGRES_INITDB_ARGS
	echo "host all all all trust" >>"$PGDATA/pg_hba.conf"
fi
exec "$@"
