package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	dockercontainer "github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"github.com/elector-go/elector/internal/proof/internal/engine"
)

// A container is a server in a container that the tests started, with its port and
// guard.
type container struct {
	image
	kind     string
	port     int // on 127.0.0.1
	provider *testcontainers.DockerProvider
	running  testcontainers.Container
	guard    *containerGuard
	told     bool // we ended it ourselves
	paused   bool
	stopped  bool // stop has run
}

// orders is how long the engine may take for what we tell it to do.
const orders = 30 * time.Second

// newContainer starts a server in a container and returns when it answers.
func newContainer(ctx context.Context, kind string, i image) (*container, error) {
	provider, err := engine.Connect()
	if err != nil {
		return nil, err
	}
	defer provider.Close() // its idle connections; it can be used again
	if err := engine.Have(ctx, provider, engine.Image(kind)); err != nil {
		return nil, err
	}
	if err := removeOrphans(ctx, provider); err != nil {
		return nil, fmt.Errorf("removing the containers of tests that were killed: %w", err)
	}
	c := &container{image: i, kind: kind, provider: provider, told: true}
	if c.guard, err = newContainerGuard(provider); err != nil {
		return nil, err
	}
	if err := c.begin(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *container) begin(ctx context.Context) (err error) {
	// Between the choice of a port and its use another process may take it.
	for range portTries {
		if c.port, err = choosePort(); err != nil {
			return err
		}
		if err = c.create(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
		if err := c.remove(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%d ports in a row: %w", portTries, err)
}

// create makes the container and starts it. The port is chosen here and not by
// the engine, which would choose another one at every start.
func (c *container) create(ctx context.Context) error {
	inside, err := network.ParsePort(c.image.port + "/tcp")
	if err != nil {
		return err
	}
	request := testcontainers.ContainerRequest{
		Image:        engine.Image(c.kind),
		Env:          c.env,
		ExposedPorts: []string{inside.String()},
		Labels:       c.guard.labels,
		WaitingFor:   asked{c},
		HostConfigModifier: func(h *dockercontainer.HostConfig) {
			h.PortBindings = network.PortMap{inside: {{
				HostIP:   netip.AddrFrom4([4]byte{127, 0, 0, 1}),
				HostPort: fmt.Sprint(c.port),
			}}}
		},
		ConfigModifier: func(config *dockercontainer.Config) { config.StopSignal = c.stopSignal },
	}
	if c.command != nil {
		request.Cmd = c.command(c.address())
	}
	for path, content := range c.files {
		request.Files = append(request.Files, testcontainers.ContainerFile{
			Reader: strings.NewReader(content), ContainerFilePath: path, FileMode: 0o644,
		})
	}
	created, err := c.provider.CreateContainer(ctx, request)
	if err != nil {
		// One that could not be completed is found by its label.
		return fmt.Errorf("making a container of %s: %w", request.Image, err)
	}
	c.running = created
	return c.start(ctx)
}

// start starts the container and waits until the server answers.
func (c *container) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	c.told = false
	err := c.running.Start(ctx)
	if err == nil {
		return nil
	}
	state, err2 := c.state()
	if err2 == nil && !state.Running {
		c.told = true // it is told here and need not be told again by stop
		for _, sign := range []string{"port is already allocated", "address already in use"} {
			if strings.Contains(err.Error(), sign) {
				return errPortTaken
			}
		}
	}
	return fmt.Errorf("a container of %s does not answer on port %d: %w%s", engine.Image(c.kind), c.port, err, c.logEnd())
}

// asked is testcontainers' way of waiting: until the server itself answers or
// the container is no more.
type asked struct{ c *container }

func (a asked) WaitUntilReady(ctx context.Context, target wait.StrategyTarget) error {
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	// Short at first: the engine takes connections before the server does, and
	// a client whose first one was lost may wait long before it tries another.
	for patience := 250 * time.Millisecond; ; patience = min(2*patience, 5*time.Second) {
		attempt, cancel := context.WithTimeout(ctx, patience)
		err := a.c.ready(attempt, a.c.address())
		cancel()
		if err == nil {
			return nil
		}
		state, err2 := target.State(ctx)
		if err2 == nil && !state.Running {
			return fmt.Errorf("it ended with exit status %d: %w", state.ExitCode, err)
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-again.C:
		}
	}
}

// stop removes the container, its volumes and its guard.
func (c *container) stop() error {
	if c.stopped {
		return nil
	}
	died := c.alive()
	if c.told || c.running == nil {
		died = nil
	}
	c.stopped = true
	return errors.Join(died, c.remove(), c.guard.dismiss(), c.provider.Close())
}

// remove removes whatever has our label: a container that could not be
// completed too.
func (c *container) remove() error {
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	c.running = nil
	return removeLabelled(ctx, c.provider, c.guard.label())
}

func (c *container) pause() error {
	if err := c.alive(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	for {
		_, err := c.provider.Client().ContainerPause(ctx, c.running.GetContainerID(), client.ContainerPauseOptions{})
		c.paused = c.paused || err == nil
		// On a busy machine runc gives up, thaws the container and leaves it to its caller to
		// try again: see https://github.com/opencontainers/runc/pull/4388.
		if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "unable to freeze") {
			return err
		}
	}
}

func (c *container) resume() error {
	if err := c.alive(); err != nil || !c.paused {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	_, err := c.provider.Client().ContainerUnpause(ctx, c.running.GetContainerID(), client.ContainerUnpauseOptions{})
	c.paused = c.paused && err != nil
	return err
}

func (c *container) kill() error {
	if err := c.alive(); err != nil {
		return err
	}
	by := "SIGKILL"
	if c.saves {
		if err := c.resume(); err != nil {
			return err
		}
		by = c.stopSignal
	}
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	id := c.running.GetContainerID()
	ended := c.provider.Client().ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: dockercontainer.WaitConditionNotRunning})
	if _, err := c.provider.Client().ContainerKill(ctx, id, client.ContainerKillOptions{Signal: by}); err != nil {
		return err
	}
	c.told, c.paused = true, false
	select {
	case <-ended.Result:
		return nil
	case err := <-ended.Error:
		return err
	}
}

func (c *container) restart(ctx context.Context) error {
	if err := c.alive(); err == nil {
		if err := c.resume(); err != nil {
			return err
		}
		c.told = true
		patience := gone
		if err := c.running.Stop(ctx, &patience); err != nil {
			return err
		}
	} else if c.stopped || !c.told {
		return err
	}
	return c.start(ctx)
}

// process is the server's first process, where the engine's processes are this
// machine's.
func (c *container) process() int {
	if runtime.GOOS != "linux" {
		return 0
	}
	state, err := c.state()
	if err != nil {
		return 0 // the next call to it will say why
	}
	return state.Pid
}

func (c *container) state() (*dockercontainer.State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	return c.running.State(ctx)
}

// alive returns nil if the server runs, paused or not.
func (c *container) alive() error {
	switch {
	case c.stopped:
		return fmt.Errorf("%s was stopped", c.how())
	case c.told:
		return fmt.Errorf("%s does not run; Restart it", c.how())
	}
	state, err := c.state()
	switch {
	case errdefs.IsNotFound(err):
		return fmt.Errorf("the container of %s was removed by another process", c.how())
	case err != nil:
		return err
	case !state.Running:
		return fmt.Errorf("%s died by itself: exit status %d%s", c.how(), state.ExitCode, c.logEnd())
	}
	return nil
}

// logEnd is the end of the server's log as the end of an error.
func (c *container) logEnd() string {
	ctx, cancel := context.WithTimeout(context.Background(), orders)
	defer cancel()
	logs, err := c.running.Logs(ctx)
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	defer logs.Close()
	all, err := io.ReadAll(logs)
	if err != nil {
		return "; its log cannot be read: " + err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(all)), "\n")
	lines = lines[max(0, len(lines)-15):]
	if len(lines) == 1 && lines[0] == "" {
		return "; its log is empty"
	}
	return "; its log ends with:\n\t" + strings.Join(lines, "\n\t")
}
