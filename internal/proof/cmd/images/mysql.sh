#!/bin/sh
# As the entry point of the official image, as far as tests need it: new tables at
# the first start, and then the server with the given settings.
set -e
if [ "$MYSQL_ALLOW_EMPTY_PASSWORD" != 1 ] || [ "$MYSQL_ROOT_HOST" != % ] || [ "$MYSQL_DATABASE" != test ]; then
	echo "this stand-in for the official image knows an empty password of root, from everywhere, and the database test only" >&2
	exit 1
fi
export LD_LIBRARY_PATH=/mariadb/lib
server="/mariadb/mariadbd --no-defaults --datadir=/data/db --tmpdir=/tmp --lc-messages-dir=/mariadb --character-sets-dir=/mariadb/charsets"
if ! [ -e /data/db/made ]; then
	$server --bootstrap </mariadb/tables.sql
	: >/data/db/made
fi
exec $server --bind-address=0.0.0.0 --socket=/tmp/socket --pid-file=/tmp/pid "$@"
