package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// official are the images that the stores' makers publish, by kind of store. S3's
// makers publish none.
var official = map[string]string{
	"etcd":      "gcr.io/etcd-development/etcd:v3.7.3",
	"zookeeper": "zookeeper:3.9",
	"postgres":  "postgres:17",
	"dynamodb":  "amazon/dynamodb-local:3.3.1",
	"gcs":       "fsouza/fake-gcs-server:1.56.1",
	"azureblob": "mcr.microsoft.com/azure-storage/azurite:3.37.0",
	"consul":    "hashicorp/consul:1.20.1",
	"mysql":     "mariadb:10.11",
	"s3":        "",
}

// Kinds are the kinds of stores that there are images of.
func Kinds() []string { return slices.Sorted(maps.Keys(official)) }

// Variable is the environment variable that names another image for the kind.
func Variable(kind string) string { return "ELECTOR_TEST_IMAGE_" + strings.ToUpper(kind) }

// Image returns the image for the kind: that of the environment, or the
// official one.
func Image(kind string) string {
	if name := os.Getenv(Variable(kind)); name != "" {
		return name
	}
	return official[kind]
}

// standIns begins the names of images that only make images makes. No registry
// is asked for them.
const standIns = "local/"

// StandIn returns the name of the image that make images builds for the kind.
func StandIn(kind, version string) string { return standIns + "elector-" + kind + ":" + version }

// How long a registry may be silent: before its first word, and while it sends.
// Tests are less patient.
var (
	firstWord = 20 * time.Second
	nextWord  = time.Minute
)

// refusals are the images that could not be had, and the registries that could
// not be reached. They are not asked again in the life of the process.
var (
	refusalsMutex sync.Mutex
	refusals      = map[string]error{}
)

// Have returns nil if the image is on this machine, or pulls it. It blocks for
// 20 seconds if the registry says nothing, otherwise as long as it goes on
// sending, or until ctx ends.
func Have(ctx context.Context, p *testcontainers.DockerProvider, name string) error {
	if name == "" {
		return errors.New("there is no official image; run make images")
	}
	refusalsMutex.Lock() // during the pull: another one for the same image waits
	defer refusalsMutex.Unlock()
	_, err := p.Client().ImageInspect(ctx, name)
	if !errdefs.IsNotFound(err) {
		return err
	}
	if strings.HasPrefix(name, standIns) {
		return fmt.Errorf("image %s is not there; run make images", name)
	}
	from := registry(name)
	if err := refusals[name]; err != nil {
		return err
	}
	if err := refusals[from]; err != nil {
		return fmt.Errorf("image %s is not there, and %s failed before: %w", name, from, err)
	}
	err = pull(ctx, p, name)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("pulling image %s: %w", name, err) // not the registry's fault
	case errdefs.IsNotFound(err), errdefs.IsUnauthorized(err), errdefs.IsPermissionDenied(err):
		err = fmt.Errorf("image %s is not there and cannot be pulled: %w", name, err)
		refusals[name] = err
		return err
	}
	// Anything but a clear no is trouble on the way to the registry.
	refusals[from] = err
	return fmt.Errorf("image %s is not there and cannot be pulled: %w", name, err)
}

// registry is the host in an image's name.
func registry(name string) string {
	host, _, ok := strings.Cut(name, "/")
	if ok && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return "docker.io"
}

func pull(ctx context.Context, p *testcontainers.DockerProvider, name string) error {
	silent := errors.New("its registry is silent")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(firstWord, func() { cancel(fmt.Errorf("%w for %v", silent, firstWord)) })
	defer watchdog.Stop()

	var options client.ImagePullOptions
	if _, login, err := testcontainers.DockerImageAuth(ctx, name); err == nil {
		if options.RegistryAuth, err = authconfig.Encode(login); err != nil {
			return err
		}
	}
	said, err := p.Client().ImagePull(ctx, name, options)
	if err == nil {
		defer said.Close()
		for message, e := range said.JSONMessages(ctx) {
			if err = e; err == nil && message.Error != nil {
				err = message.Error
			}
			if err != nil {
				break
			}
			watchdog.Reset(nextWord)
		}
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, silent) {
		return cause
	}
	return err
}
