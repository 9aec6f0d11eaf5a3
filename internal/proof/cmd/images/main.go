// Command images builds stand-ins for the images of the stores, for machines
// that reach no registry of images: local/elector-etcd and so on. They have the
// programs that make stores fetches and what else these need of this machine.
// What is there already is left alone.
//
// With a command it gets an image for each of the kinds of stores, in this order: the
// one that ELECTOR_TEST_IMAGE_ETCD and the like name, the official one if it is
// here or can be pulled, a stand-in. Then it runs the command with these
// variables set.
//
// If no engine answers, it installs Docker (as root on Debian) and starts its
// engine, and ends it when all is done.
//
// Usage: go run ./cmd/images [-kinds "etcd gcs"] [command [argument]...]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"

	"github.com/elector-go/elector/internal/diagnose"
	"github.com/elector-go/elector/internal/proof/internal/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	kinds := flag.String("kinds", strings.Join(engine.Kinds(), " "), "the stores, with spaces between")
	flag.Parse()
	err := run(ctx, strings.Fields(*kinds), flag.Args())
	stop()
	if failed := (commandFailed{}); errors.As(err, &failed) {
		os.Exit(failed.code) // the command has said why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, diagnose.Failure("images", err))
		os.Exit(1)
	}
}

// commandFailed is that the wrapped command exited with a code; programs that this one
// runs for itself, such as apt-get, fail otherwise.
type commandFailed struct{ code int }

func (e commandFailed) Error() string { return fmt.Sprintf("the command exited with %d", e.code) }

func run(ctx context.Context, kinds, command []string) (err error) {
	end, err := ensureEngine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	provider, err := engine.Connect()
	if err != nil {
		return err
	}
	defer provider.Close()
	chosen := os.Environ()
	for _, kind := range kinds {
		if !slices.Contains(engine.Kinds(), kind) {
			return fmt.Errorf("unknown kind of store %q; known are %s", kind, strings.Join(engine.Kinds(), ", "))
		}
		name := ""
		if len(command) > 0 {
			name = published(ctx, provider, kind)
		}
		if name == "" {
			if name, err = build(ctx, provider, kind); err != nil {
				return fmt.Errorf("the image for %s: %w", kind, err)
			}
		}
		chosen = append(chosen, engine.Variable(kind)+"="+name)
	}
	if len(command) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = chosen, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it has containers to remove
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() > 0 {
		return commandFailed{exit.ExitCode()}
	}
	return err
}

// published returns the image that the caller has named, or the official one,
// or "" if the official one cannot be had.
func published(ctx context.Context, p *testcontainers.DockerProvider, kind string) string {
	name := engine.Image(kind)
	if os.Getenv(engine.Variable(kind)) != "" {
		fmt.Printf("%s: %s, named by %s\n", kind, name, engine.Variable(kind))
		return name // what is wrong with it, the tests will say
	}
	if err := engine.Have(ctx, p, name); err != nil {
		line, _, _ := strings.Cut(err.Error(), "\n")
		fmt.Printf("%s: no official image: %s\n", kind, line)
		return ""
	}
	fmt.Printf("%s: official image %s\n", kind, name)
	return name
}

// build builds the kind's stand-in if it is not there, and returns its name.
func build(ctx context.Context, p *testcontainers.DockerProvider, kind string) (string, error) {
	begun := time.Now()
	fetch := exec.CommandContext(ctx, "go", "run", "./cmd/fetch", kind)
	fetch.Stdout, fetch.Stderr = os.Stdout, os.Stderr
	if err := fetch.Run(); err != nil {
		return "", fmt.Errorf("make stores: %w", err)
	}
	s := standIns[kind]
	version, err := s.version(ctx)
	if err != nil {
		return "", err
	}
	name := engine.StandIn(kind, version+"-"+edition)
	_, err = p.Client().ImageInspect(ctx, name)
	if err == nil {
		fmt.Printf("%s: there: image %s\n", kind, name)
		return name, nil
	}
	if !errdefs.IsNotFound(err) {
		return "", err
	}
	archive, w := io.Pipe()
	go func() { w.CloseWithError(fill(ctx, s, w)) }()
	defer archive.Close()
	answer, err := p.Client().ImageImport(ctx, client.ImageImportSource{Source: archive, SourceName: "-"}, name, client.ImageImportOptions{Changes: s.changes})
	if err == nil {
		err = readToEnd(answer)
	}
	if err != nil {
		return "", err
	}
	made, err := p.Client().ImageInspect(ctx, name)
	if err != nil {
		return "", err
	}
	fmt.Printf("%s: built image %s, %d MB (%.1f s)\n", kind, name, made.Size>>20, time.Since(begun).Seconds())
	return name, nil
}

// fill writes the stand-in's files, and those that every program needs.
func fill(ctx context.Context, s standIn, w io.Writer) error {
	r := newRoot(w)
	user := fmt.Sprintf("store:x:%d:%d::%s:/bin/sh\n", userID, userID, data)
	group := fmt.Sprintf("store:x:%d:\n", userID)
	return errors.Join(
		r.text("/etc/passwd", "root:x:0:0::/:/bin/sh\n"+user, 0o644),
		r.text("/etc/group", "root:x:0:\n"+group, 0o644),
		r.ours(data),
		r.open("/tmp"),
		r.shell(),
		s.fill(ctx, r),
		r.tar.Close(),
	)
}

// readToEnd reads the engine's answer about a long job and returns the error
// that is told in it.
func readToEnd(answer io.ReadCloser) error {
	defer answer.Close()
	for messages := json.NewDecoder(answer); ; {
		var m jsonstream.Message
		err := messages.Decode(&m)
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case m.Error != nil:
			return m.Error
		}
	}
}
