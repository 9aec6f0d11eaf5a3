package binaries

// KubernetesPath returns where the API server of Kubernetes is, or would be once it
// is built.
func KubernetesPath() (string, error) { return within("kube-apiserver-" + KubernetesVersion) }

// Kubernetes returns the API server that was built.
func Kubernetes() (string, error) {
	path, err := KubernetesPath()
	if err != nil {
		return "", err
	}
	return path, executable(path)
}
