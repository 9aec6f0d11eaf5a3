//go:build linux

package guardian

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// The test binary is the guardian, a wrapper, and the command's whole family too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "guardian":
			Main()
		case "wrapper":
			wrap(os.Args[2], os.Args[3], os.Args[4], os.Args[5])
		case "member":
			live(os.Args[2], os.Args[3])
		}
	}
	os.Exit(m.Run())
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "member" {
		runtime.LockOSThread() // of main, for a member that ends it
	}
}

// live is a member of the family: a process that ignores SIGTERM, and holds a fifo
// open while it lives. SIGUSR1 ends it with 7.
func live(fifo, name string) {
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGHUP)
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	switch name {
	case "parent":
		begin(fifo, "grandchild", nil)
		begin(fifo, "between", nil).Wait()
	case "between":
		begin(fifo, "daemon", &syscall.SysProcAttr{Setsid: true})
		os.Exit(0)
	case "threadless":
		runtime.GOMAXPROCS(2) // the first thread takes one with it
		ready := make(chan bool)
		go func() {
			runtime.LockOSThread()
			ready <- true
			for { // until the first thread has ended
				if p, err := look(os.Getpid()); err == nil && p.zombie {
					break
				}
				time.Sleep(time.Millisecond)
			}
			announce(f, name)
			select {}
		}()
		<-ready
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	}
	announce(f, name)
	switch name {
	case "comet":
		flee(false)
	case "comets":
		for range 8 {
			begin(fifo, "comet", nil)
			begin(fifo, "deserter", nil)
		}
	case "deserter":
		flee(true)
	}
	<-usr1
	os.Exit(7)
}

// flee forks and ends, again and again, for 20 s at the most. With desert each child
// has a session of its own.
func flee(desert bool) {
	for end := Now().Add(20 * time.Second); Now() < end; {
		child, _, _ := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if child != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		if desert {
			syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
		}
	}
}

func announce(f *os.File, name string) { fmt.Fprintln(f, name, os.Getpid()) }

func begin(fifo, name string, attributes *syscall.SysProcAttr) *exec.Cmd {
	c := exec.Command("/proc/self/exe", "member", fifo, name)
	c.SysProcAttr = attributes
	if err := c.Start(); err != nil {
		panic(err)
	}
	return c
}

// wrap is a wrapper that does not renew, and stops the command when it is told.
func wrap(fifo, deadline, stop, isolate string) {
	d, _ := strconv.ParseInt(deadline, 10, 64)
	c := command(fifo, "parent", Moment(d))
	c.Isolate = isolate == "true"
	g, err := Start(c, "guardian", func(string) {})
	if err != nil {
		panic(err)
	}
	if grace, err := time.ParseDuration(stop); err == nil {
		os.Stdin.Read(make([]byte, 1)) // until told
		g.Stop(grace)
		fmt.Println("stopping")
	}
	<-g.Done()
	os.Exit(0)
}

// command runs a member of the family. Kill is long, so that a slow machine is in
// time too.
func command(fifo, name string, deadline Moment) Command {
	return Command{
		Path: "/proc/self/exe", Argv: []string{"elector.test", "member", fifo, name}, Env: os.Environ(),
		Deadline: deadline, Kill: 2 * time.Second, Grace: 200 * time.Millisecond,
	}
}
