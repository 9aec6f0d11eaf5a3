package binaries

import (
	"errors"
	"path/filepath"
)

// PrometheusPath returns the folder where the programs prometheus and promtool are,
// or would be once they are fetched.
func PrometheusPath() (string, error) { return within("prometheus-" + PrometheusVersion) }

// Prometheus returns the fetched programs.
func Prometheus() (server, tool string, err error) {
	path, err := PrometheusPath()
	if err != nil {
		return "", "", err
	}
	server, tool = filepath.Join(path, "prometheus"), filepath.Join(path, "promtool")
	return server, tool, errors.Join(executable(server), executable(tool))
}
