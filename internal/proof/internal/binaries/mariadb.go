package binaries

import (
	"os"
	"path/filepath"
	"strings"
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

// MariaDBTables returns the statements that make the system tables, with root as an
// administrator without a password, and a database.
func MariaDBTables(database string) (string, error) {
	path, err := MariaDB()
	if err != nil {
		return "", err
	}
	var script strings.Builder
	script.WriteString("create database mysql;\nuse mysql;\nset @auth_root_socket=null;\n")
	for _, name := range []string{"mysql_system_tables.sql", "mysql_system_tables_data.sql"} {
		content, err := os.ReadFile(filepath.Join(path, name))
		if err != nil {
			return "", err
		}
		script.Write(content)
	}
	script.WriteString("create database " + database + ";\n")
	return script.String(), nil
}
