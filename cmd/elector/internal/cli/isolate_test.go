//go:build linux

package cli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Where the kernel refuses a PID namespace, run says so and starts nothing.
func TestIsolateRefused(t *testing.T) {
	c := elect(t.TempDir(), "echo started", "--isolate")
	c.Args = append([]string{"sh", "-c", `echo 0 > /proc/sys/user/max_pid_namespaces && exec "$0" "$@"`, c.Path}, c.Args[1:]...)
	c.Path = "/bin/sh"
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	if err := c.Start(); err != nil {
		t.Log("this machine has no user namespaces, so its refusal is asked for:", err)
		c = elect(t.TempDir(), "echo started", "--isolate")
		c.Stdout, c.Stderr = &out, &said
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if code := exit(c); code != exitMisconfigured || out.Len() > 0 || !strings.Contains(said.String(), "PID namespace") || !strings.Contains(said.String(), "--isolate") {
		t.Errorf("code %d, %q, %q; want %d, and nothing started", code, out.String(), said.String(), exitMisconfigured)
	}
}

// The command sees its own processes, ends with its code, and gets signals.
func TestIsolate(t *testing.T) {
	if out, err := exec.Command("/proc/self/exe", guardianArgument, "probe").CombinedOutput(); err == nil {
		t.Fatalf("a guardian outside a namespace isolates itself: %s", out)
	}
	c := elect(t.TempDir(), `trap "exit 5" TERM; cat /proc/1/comm; while :; do sleep 0.01; done`, "--isolate")
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	var name string
	if _, err := fmt.Fscan(out, &name); err != nil {
		if exit(c) == exitMisconfigured {
			t.Log("not shown here:", said.String())
			return
		}
		t.Fatal(err, said.String())
	}
	signalTo(t, c, syscall.SIGTERM)
	if code := exit(c); code != 5 || name != "elector" {
		t.Errorf("code %d, process 1 is %q; want 5 and elector", code, name)
	}
}
