package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// fetchKubernetes builds Kubernetes' API server, and gets the etcd that it needs.
func fetchKubernetes(ctx context.Context) (string, error) {
	if _, err := fetchEtcd(ctx); err != nil {
		return "", err
	}
	return goServer{
		name:    "kube-apiserver",
		module:  "k8s.io/kubernetes",
		pkg:     "k8s.io/kubernetes/cmd/kube-apiserver",
		version: binaries.KubernetesVersion,
		ask:     "--version",
		path:    binaries.KubernetesPath,
		there:   binaries.Kubernetes,
		replace: kubernetesParts,
		set:     " -X k8s.io/component-base/version.gitVersion=v" + binaries.KubernetesVersion,
	}.fetch(ctx)
}

// staged finds the modules that Kubernetes' go.mod takes from its own folders. They
// are published too, kubernetes 1.X.Y with version 0.X.Y.
var staged = regexp.MustCompile(`(?m)^\t(k8s\.io/[a-z-]+) => \./staging/src/`)

func kubernetesParts(ctx context.Context, dir string) (string, error) {
	source, err := moduleSource(ctx, dir, "k8s.io/kubernetes", binaries.KubernetesVersion)
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	parts := staged.FindAllStringSubmatch(string(content), -1)
	if len(parts) == 0 {
		return "", errors.New("the go.mod of Kubernetes has another form than this command knows")
	}
	version := "v0" + strings.TrimPrefix(binaries.KubernetesVersion, "1")
	var b strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&b, "replace %[1]s => %[1]s %[2]s\n", part[1], version)
	}
	return b.String(), nil
}
