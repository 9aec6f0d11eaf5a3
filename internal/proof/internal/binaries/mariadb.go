package binaries

import (
	"os"
	"path/filepath"
)

// MariaDBFiles are what a MariaDB server needs of its packages: the program, the
// statements that make its system tables, its messages, and a folder each of
// character sets and of libraries.
var MariaDBFiles = []string{"mariadbd", "mysql_system_tables.sql", "mysql_system_tables_data.sql", "errmsg.sys", "charsets", "lib"}

// MariaDBPath returns the folder where MariaDB's server is, or would be once it is
// fetched.
func MariaDBPath() (string, error) { return within("mariadb-" + MariaDBVersion) }

// MariaDB returns the folder of the fetched MariaDB server.
func MariaDB() (string, error) {
	path, err := MariaDBPath()
	if err != nil {
		return "", err
	}
	for _, name := range MariaDBFiles {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			return "", err
		}
	}
	return path, executable(filepath.Join(path, "mariadbd"))
}
