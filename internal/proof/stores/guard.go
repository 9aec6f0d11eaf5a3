package stores

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// A guard is a small process that outlives us if we are killed: its input then
// ends, and it does what its script has after the loop that reads.
type guard struct {
	cmd   *exec.Cmd
	input io.WriteCloser
}

// serverGuard kills the server, processes that stand still included, and removes
// the folder $1. It keeps the last line of its input, the processes to kill. A
// dying server may write to the folder while it is being removed.
const serverGuard = `
while read -r line; do
	if [ "$line" = done ]; then exit 0; fi
	targets=$line
done
kill -s KILL -- $targets 2>/dev/null
rm -rf -- "$1" 2>/dev/null || { sleep 1; rm -rf -- "$1"; }
`

// newGuard starts a guard with the argument $1 of its script, and with what it
// needs in its environment besides ours.
func newGuard(script, argument string, environment ...string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", script, "elector-store-guard", argument)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), environment...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // no Ctrl-C for it
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &guard{cmd, input}, nil
}

// watch tells the guard what to kill, instead of what it knew before: process
// numbers, or negative ones of groups.
func (g *guard) watch(pids ...int) {
	// A guard that is gone shows when it is dismissed.
	fmt.Fprintln(g.input, strings.Trim(fmt.Sprint(pids), "[]"))
}

// dismiss ends the guard, if there is one; there is nothing left to guard.
func (g *guard) dismiss() error {
	if g == nil {
		return nil
	}
	fmt.Fprintln(g.input, "done")
	g.input.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("the guard process: %w", err)
	}
	return nil
}
