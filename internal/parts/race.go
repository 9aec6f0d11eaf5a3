package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// raceDetector returns nil if the race detector works here, or why it does not: it needs
// cgo, and that a C compiler.
func raceDetector(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "env", "CGO_ENABLED", "CC").Output()
	if err != nil {
		return err
	}
	enabled, cc, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	compiler := strings.Fields(cc)
	if len(compiler) == 0 {
		compiler = []string{"cc"}
	}
	if _, err := exec.LookPath(compiler[0]); err != nil {
		return fmt.Errorf("there is no C compiler (%s)", compiler[0])
	}
	if enabled != "1" {
		return errors.New("CGO_ENABLED is not 1")
	}
	cmd := exec.CommandContext(ctx, compiler[0], append(compiler[1:], "-x", "c", "-o", os.DevNull, "-")...)
	cmd.Stdin = strings.NewReader("#include <stdlib.h>\nint main(void) { return 0; }\n")
	if cmd.Run() != nil {
		return fmt.Errorf("the C compiler %s does not work", compiler[0])
	}
	return nil
}
