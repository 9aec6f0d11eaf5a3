// Package engine finds Docker's engine and the images of the stores.
package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
)

// answers is how long an engine may take for its first answer.
const answers = 2 * time.Minute // much longer than it takes

// Connect returns the engine of this machine, found as testcontainers finds it:
// DOCKER_HOST, the current context, the usual sockets. It blocks for at most 20
// seconds; what came out of it is remembered for the life of the process.
//
// An engine of another machine is an error: the stores' ports are published on
// its 127.0.0.1 and not on ours.
func Connect() (*testcontainers.DockerProvider, error) { return connect() }

var connect = sync.OnceValues(func() (*testcontainers.DockerProvider, error) {
	log.SetDefault(log.NewNoopLogger())
	if err := settings(); err != nil {
		return nil, err
	}
	type found struct {
		provider *testcontainers.DockerProvider
		err      error
	}
	// It knows no context: an engine that hangs leaves this goroutine behind.
	first := make(chan found, 1)
	go func() {
		p, err := ask()
		first <- found{p, err}
	}()
	select {
	case f := <-first:
		return f.provider, f.err
	case <-time.After(answers):
		return nil, fmt.Errorf("no answer from Docker's engine within %v; restart it, or set ELECTOR_TEST_METHOD=process", answers)
	}
})

// settings are testcontainers' own. What the caller has set stays.
//
// Ryuk, its collector of containers that are left over, is switched off: its
// image may be out of reach, and its port is open to the whole network. Our
// containers have guards instead.
func settings() error {
	defaults := map[string]string{"TESTCONTAINERS_RYUK_DISABLED": "true"}
	// In a machine that looks like a container, it takes the engine's gateway
	// for the address of published ports.
	if _, err := os.Stat("/.dockerenv"); err == nil {
		defaults["TESTCONTAINERS_HOST_OVERRIDE"] = "127.0.0.1"
	}
	var errs []error
	for name, value := range defaults {
		if os.Getenv(name) == "" {
			errs = append(errs, os.Setenv(name, value))
		}
	}
	return errors.Join(errs...)
}

func ask() (*testcontainers.DockerProvider, error) {
	p, err := testcontainers.NewDockerProvider(append(
		testcontainers.Generic2DockerOptions(testcontainers.WithLogger(log.NewNoopLogger())),
		testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge), // it makes a network of its own otherwise
	)...)
	if err != nil {
		return nil, fmt.Errorf("no Docker engine answers: %w", err)
	}
	ctx := context.Background()
	if err := p.Health(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("no Docker engine answers: %w", err), p.Close())
	}
	host, err := p.DaemonHost(ctx)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if host != "localhost" && host != "127.0.0.1" && host != "::1" {
		return nil, errors.Join(fmt.Errorf("the Docker engine is on %s: its 127.0.0.1 is not this machine's", host), p.Close())
	}
	return p, nil
}
