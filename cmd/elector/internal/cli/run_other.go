//go:build !unix

package cli

import (
	"context"
	"errors"
	"syscall"
)

const guardianArgument = ""

func guard() {}

func (t *tool) run(context.Context, string, []string, *runFlags) error {
	return exitCode{exitMisconfigured, errors.New("elector run needs a Unix system: here nothing would end all descendants of the command in time")}
}

func endBy(syscall.Signal) {}
