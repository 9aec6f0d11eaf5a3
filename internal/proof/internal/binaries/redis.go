package binaries

import (
	"os"
	"os/exec"
	"path/filepath"
)

// RedisFiles are what a Redis server needs of its packages: the program, and a folder
// of libraries.
var RedisFiles = []string{"redis-server", "lib"}

// RedisPath returns the folder where Redis's server is, or would be once it is
// fetched.
func RedisPath() (string, error) { return within("redis-" + RedisVersion) }

// Redis returns the server's program, and the folder of its libraries: the one in PATH,
// whose libraries the machine has, or the fetched one.
func Redis() (program, libraries string, err error) {
	if installed, err := exec.LookPath("redis-server"); err == nil {
		return installed, "", nil
	}
	path, err := RedisPath()
	if err != nil {
		return "", "", err
	}
	for _, name := range RedisFiles {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			return "", "", err
		}
	}
	program = filepath.Join(path, "redis-server")
	return program, filepath.Join(path, "lib"), executable(program)
}
