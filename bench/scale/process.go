package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A process is a child with many elections.
type process struct {
	cmd      *exec.Cmd
	input    io.WriteCloser
	messages chan message
	ended    chan struct{}
}

func start(t task) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), messages: make(chan message, 16), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), childVariable+"="+string(line))
	p.cmd.Stderr = os.Stderr
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	output, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := stores.StartProcess(p.cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		defer p.cmd.Wait()
		for d := json.NewDecoder(output); ; {
			var m message
			if d.Decode(&m) != nil {
				return
			}
			p.messages <- m
		}
	}()
	return p, nil
}

// await blocks until the child tells something of a kind; others are passed
// over.
func (p *process) await(ctx context.Context, kind string) (message, error) {
	for {
		select {
		case m := <-p.messages:
			switch m.Kind {
			case kind:
				return m, nil
			case failed:
				return m, errors.New(m.Error)
			}
		case <-p.ended:
			return message{}, fmt.Errorf("the process has ended and not told %q", kind)
		case <-ctx.Done():
			return message{}, fmt.Errorf("waiting for %q: %w", kind, context.Cause(ctx))
		}
	}
}

// report asks the child.
func (p *process) report(ctx context.Context) (message, error) {
	if _, err := io.WriteString(p.input, "\n"); err != nil {
		return message{}, err
	}
	return p.await(ctx, report)
}

// kill ends the child with SIGKILL and waits for its end. It may be called
// again.
func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.ended
}
