package child

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
)

// An Again is this program, started again with a task. It ends when its input
// does, as it does when this process has ended.
type Again struct {
	cmd     *exec.Cmd
	input   io.WriteCloser
	printed tail
	ended   chan struct{}
}

// StartAgain starts this program again, with a task in an environment variable,
// which main looks for with [Task]. It calls take with each message that the
// child prints, one after the other. Both are encoded as JSON.
func StartAgain[T any](variable string, task any, take func(T)) (*Again, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	a := &Again{cmd: exec.Command(self), ended: make(chan struct{})}
	a.cmd.Env = append(os.Environ(), variable+"="+string(line))
	a.cmd.Stderr = &a.printed
	if a.input, err = a.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := Start(a.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(a.ended)
		defer a.cmd.Wait() // all that it printed as errors is there then too
		for d := json.NewDecoder(output); ; {
			var message T
			if d.Decode(&message) != nil {
				return // its exit status says more
			}
			take(message)
		}
	}()
	return a, nil
}

// Task reads the task of a program that StartAgain has started, and returns
// false if this one was not.
func Task(variable string, task any) (bool, error) {
	line := os.Getenv(variable)
	if line == "" {
		return false, nil
	}
	return true, json.Unmarshal([]byte(line), task)
}

// PID is the child's process, for [Freeze] and [Thaw].
func (a *Again) PID() int { return a.cmd.Process.Pid }

// Tell writes a line to the child's input.
func (a *Again) Tell(line string) error {
	_, err := io.WriteString(a.input, line+"\n")
	return err
}

// Ended is closed when the child has ended and all its messages were taken.
func (a *Again) Ended() <-chan struct{} { return a.ended }

// End ends the child's input and waits until it has ended. It may be called
// again.
func (a *Again) End() {
	a.input.Close()
	<-a.ended
}

// Kill ends the child with SIGKILL and waits until it has ended. It returns an
// error if the child had ended before.
func (a *Again) Kill() error {
	err := a.cmd.Process.Kill()
	<-a.ended
	return err
}

// PrintedMark comes before what a child printed, in an error.
const PrintedMark = "; it printed:"

// Printed is the last that the child printed as errors, after PrintedMark; empty
// if it printed nothing.
func (a *Again) Printed() string { return a.printed.String() }

// A tail keeps the last that was written to it.
type tail struct {
	mutex sync.Mutex
	kept  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.kept = append(t.kept, b...)
	t.kept = t.kept[max(0, len(t.kept)-2000):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	said := strings.TrimSpace(string(t.kept))
	if said == "" {
		return ""
	}
	return PrintedMark + "\n\t" + strings.ReplaceAll(said, "\n", "\n\t")
}
