package binaries

// ConsulPath returns where the Consul server is, or would be once it is built.
func ConsulPath() (string, error) { return within("consul-" + ConsulVersion) }

// Consul returns the Consul server that was built.
func Consul() (string, error) {
	path, err := ConsulPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}
