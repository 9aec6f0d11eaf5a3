package child

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
)

// starter is a goroutine with a thread of its own that never ends: a child's
// parent death signal comes when the thread that made it ends, and Go ends
// threads as it likes.
var starter = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go func() {
		runtime.LockOSThread()
		for job := range jobs {
			job()
		}
	}()
	return jobs
})

func start(cmd *exec.Cmd, end syscall.Signal) error {
	cmd.SysProcAttr.Pdeathsig = end
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// Table reads the system's table of processes.
func Table() ([]State, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	var all []State
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue // it has ended meanwhile
		}
		// "pid (name) state parent …", and a name may have anything in it.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		pid, err1 := strconv.Atoi(filepath.Base(dir))
		if err1 != nil || len(fields) < 2 {
			continue
		}
		parent, _ := strconv.Atoi(string(fields[1]))
		all = append(all, State{pid, parent, fields[0][0]})
	}
	return all, nil
}
