package binaries

// NATSPath returns where nats-server is, or would be once it is built.
func NATSPath() (string, error) { return within("nats-server-" + NATSVersion) }

// NATS returns the nats-server that was built.
func NATS() (string, error) {
	path, err := NATSPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}
