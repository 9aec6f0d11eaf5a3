package stores

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Our containers have two labels: whose they are, as host and process, and a
// name that no other store has.
const (
	ownerLabel = "elector.test.owner"
	storeLabel = "elector.test.store"
)

// A containerGuard removes the container if we are killed. Where docker's command
// line is missing there is no such process: the next test that starts a container
// removes what is left over, see removeOrphans.
type containerGuard struct {
	labels map[string]string
	*guard // nil without a process
}

// containerScript removes the containers with the label $1. The engine may be
// about to make one: it looks again.
const containerScript = `
while read -r line; do
	if [ "$line" = done ]; then exit 0; fi
done
for pause in 0 1 3; do
	sleep $pause
	ids=$(docker ps --all --quiet --filter "label=$1")
	if [ -n "$ids" ]; then docker rm --force --volumes $ids; fi
done
`

func newContainerGuard(p *testcontainers.DockerProvider) (*containerGuard, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	g := &containerGuard{labels: map[string]string{
		ownerLabel: host + "/" + strconv.Itoa(os.Getpid()),
		storeLabel: rand.Text(),
	}}
	if _, err := exec.LookPath("docker"); errors.Is(err, exec.ErrNotFound) {
		return g, nil
	}
	g.guard, err = newGuard(containerScript, g.label(), "DOCKER_HOST="+p.Client().DaemonHost())
	return g, err
}

func (g *containerGuard) label() string { return storeLabel + "=" + g.labels[storeLabel] }

var orphans sync.Once

// removeOrphans removes, once in the life of this process, the containers whose
// owners were processes of this machine and are gone.
func removeOrphans(ctx context.Context, p *testcontainers.DockerProvider) (err error) {
	orphans.Do(func() { err = lookForOrphans(ctx, p) })
	return err
}

func lookForOrphans(ctx context.Context, p *testcontainers.DockerProvider) error {
	us, err := os.Hostname()
	if err != nil {
		return err
	}
	list, err := p.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", ownerLabel)})
	if err != nil {
		return err
	}
	for _, c := range list.Items {
		host, number, _ := strings.Cut(c.Labels[ownerLabel], "/")
		pid, err := strconv.Atoi(number)
		if host != us || err != nil || !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			continue
		}
		if err := removeContainer(ctx, p, c.ID); err != nil {
			return err
		}
	}
	return nil
}

// removeLabelled removes the containers with the label.
func removeLabelled(ctx context.Context, p *testcontainers.DockerProvider, label string) error {
	list, err := p.Client().ContainerList(ctx, client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range list.Items {
		errs = append(errs, removeContainer(ctx, p, c.ID))
	}
	return errors.Join(errs...)
}

// removeContainer removes a container with its volumes, running, paused or
// not. One that is gone is no error.
func removeContainer(ctx context.Context, p *testcontainers.DockerProvider, id string) error {
	_, err := p.Client().ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) { // or another process is removing it
		return nil
	}
	return err
}
