package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/elector-go/elector/bench/peers"
	"github.com/elector-go/elector/bench/results"
)

// overlapPackage is the command that measures it, which prints a table too.
const overlapPackage = "github.com/elector-go/elector/bench/cmd/overlap"

// overlap builds the command and runs it. It has to be run inside the module,
// as go run does.
func overlap(ctx context.Context, o options) (figures []results.Figure, err error) {
	folder, err := os.MkdirTemp("", "elector-compare-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program, file := filepath.Join(folder, "overlap"), filepath.Join(folder, "figures.json")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, overlapPackage)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("building %s, which only works inside its module: %w", overlapPackage, err)
	}
	cmd := exec.CommandContext(ctx, program, overlapArguments(o, file)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// It has stores to stop.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Run(); err != nil {
		figures, _ = results.Load(file) // what there is
		err = fmt.Errorf("see above what is wrong: %w", err)
		if cmd.ProcessState.ExitCode() == 3 { // as it says that only they failed
			err = &peers.Failure{Library: "others", Store: "their stores", Err: err}
		}
		return figures, err
	}
	return results.Load(file)
}

func overlapArguments(o options, file string) []string {
	rounds := 3
	if o.short {
		rounds = 1
	}
	arguments := []string{"-json", file, "-ttl", o.ttl.String(), "-rounds", fmt.Sprint(rounds)}
	return append(arguments, o.wanted...)
}
