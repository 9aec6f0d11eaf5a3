package mysql

import (
	"errors"
	"fmt"
	"strings"

	"github.com/elector-go/elector/backends"
)

// Servers that only look like MySQL are refused at each connection, to read alone too.
// On Vitess and TiDB a statement that locks what it reads may lock nothing that the
// election's next writer waits for.
var lookalikes = []struct{ sign, name string }{
	{"tidb", "TiDB"}, {"vitess", "Vitess"}, {"oceanbase", "OceanBase"}, {"singlestore", "SingleStore"}, {"dolt", "Dolt"},
}

// version asks for what names a server, in a form that even a proxy knows.
const version = "select 'version', concat(@@version, ' ', @@version_comment)"

// alike returns why a server with such variables is refused, nil for MySQL and MariaDB.
// The versions of TiDB and Vitess can be set to anything, but neither the variables of
// TiDB nor the comment of Vitess: "Version: 21.0.0 (Git revision …) built on …".
func alike(is map[string]string) error {
	version := strings.ToLower(is["version"] + " " + is["version_comment"])
	_, oracle := is["tidb_current_ts"]
	_, mode := is["tidb_txn_mode"]
	if oracle || mode {
		version += " tidb"
	}
	if strings.Contains(version, "version: ") && strings.Contains(version, "(git ") {
		version += " vitess"
	}
	for _, l := range lookalikes {
		if strings.Contains(version, l.sign) {
			return fmt.Errorf("%w: the server is %s (version %.60s), which has the protocol of MySQL but not its locks: two processes could lead, and a guard would not guard; use MySQL, MariaDB or another store",
				backends.ErrMisconfigured, l.name, is["version"])
		}
	}
	return nil
}

// A guard may run on any connection of its caller, so it looks at the server by itself,
// without a request more.
const (
	// notOnTiDB is a comment, but TiDB executes it: there the statement is not valid.
	notOnTiDB = "/*T! elector has " + onTiDB + " */"
	onTiDB    = "no guard on TiDB"

	// noGuard is in the error of a guard on another such server.
	noGuard = "elector: no guard on this server"
)

var errUnguarded = errors.New("the transaction's connection leads to TiDB, Vitess or a node of Galera, where a guard keeps no successor out; use the server of the election's table, or with Galera one node for everything and one_node=true")

// unguarded is a condition of SQL: it is true on Vitess, and on a node of Galera unless
// that is allowed. Only a server that has the variable wsrep_on is asked for it.
func (b *Backend) unguarded() string {
	is := "@@version like '%itess%' or @@version_comment like '%itess%' or @@version_comment like 'Version: %(Git %'"
	if b.wsrep.Load() && !b.options.OneNode {
		is += " or @@global.wsrep_on"
	}
	return is
}

// unlike reports whether an error of a transaction is that of a guard which found such a
// server.
func unlike(err error) bool {
	return strings.Contains(err.Error(), noGuard) || strings.Contains(err.Error(), onTiDB)
}
