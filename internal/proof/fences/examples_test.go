package fences

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencegrpc"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A process is one of an example, with what it prints.
type process struct {
	*exec.Cmd
	said  chan string // lines
	end   func() error
	heard []string
}

// begin starts a process of an example, which ends with the test.
func begin(t *testing.T, program, store string, arguments ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, arguments...), said: make(chan string, 1000)}
	p.Env = append(os.Environ(), "ELECTOR_URL="+store)
	out, in := io.Pipe()
	p.Stdout, p.Stderr = in, in
	if err := child.Start(p.Cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.said <- lines.Text()
		}
		close(p.said)
	}()
	p.end = sync.OnceValue(func() error {
		err := p.Wait()
		in.Close()
		return err
	})
	t.Cleanup(func() {
		p.Process.Kill()
		p.end()
		for range p.said { // until its reader has ended
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(arguments, " "), strings.Join(p.heard, "\n"))
		}
	})
	return p
}

// says waits for a line, and returns what the pattern's groups match.
func (p *process) says(t *testing.T, pattern string) []string {
	t.Helper()
	wanted, late := regexp.MustCompile(pattern), time.After(time.Minute)
	for {
		select {
		case line, ok := <-p.said:
			if !ok {
				t.Fatalf("a process has ended and never said %q", pattern)
			}
			p.heard = append(p.heard, line)
			if found := wanted.FindStringSubmatch(line); found != nil {
				return found[1:]
			}
		case <-late:
			t.Fatalf("a process has not said %q for a minute", pattern)
		}
	}
}

// In both examples, with real processes: a leader is stopped between its check and
// its request, a second one takes over and writes, and the first one's request is
// refused with the highest token; so it is after the service was killed and started
// again.
func TestExamples(t *testing.T) {
	store, err := stores.Start(t.Context(), stores.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, example := range []struct {
		name, refusal string
		write         func(ctx context.Context, address string, token string) (highest elector.Token, refused bool, err error)
	}{
		{"fencedhttp", "412 Precondition Failed", writeHTTP},
		{"fencedgrpc", "FailedPrecondition", writeGRPC},
	} {
		t.Run(example.name, func(t *testing.T) {
			dir := t.TempDir()
			program := filepath.Join(dir, example.name)
			build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/"+example.name)
			build.Dir = "../../.."
			if said, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			url := store.URL + "/" + example.name + "/"

			service := begin(t, program, "", "serve", dir, "127.0.0.1:0")
			address := service.says(t, "^serves (.*)$")[0]
			first := begin(t, program, url, "lead", "-late", address)
			old := first.says(t, `^leads with token (\d+)$`)[0]
			first.says(t, "^has checked its lease")
			if err := child.WaitFrozen(first.Process.Pid); err != nil {
				t.Fatal(err)
			}
			second := begin(t, program, url, "lead", address)
			highest := second.says(t, `^leads with token (\d+)$`)[0]
			second.says(t, "^has written entry 1, by process")
			if err := child.Thaw(first.Process.Pid); err != nil {
				t.Fatal(err)
			}
			if seen := first.says(t, "refused with "+example.refusal+`: .*the highest token is (\d+)`)[0]; seen != highest {
				t.Errorf("the refusal has the highest token %s, and the second leader has %s", seen, highest)
			}
			first.Process.Kill() // it campaigns again
			first.end()
			second.says(t, "^has written entry 2, by process")
			second.Process.Signal(syscall.SIGTERM)
			second.end()

			service.Process.Kill()
			service.end()
			begin(t, program, "", "serve", dir, strings.TrimPrefix(address, "http://")).says(t, "^serves ")
			seen, refused, err := example.write(t.Context(), address, old)
			if err != nil || !refused || seen.String() != highest {
				t.Errorf("the first leader's write after a restart of the service: refused %v, with the highest token %d, %v; want %s", refused, seen, err, highest)
			}
			if _, refused, err := example.write(t.Context(), address, highest); err != nil || refused {
				t.Errorf("the second leader's write after a restart of the service: refused %v, %v", refused, err)
			}
		})
	}
}

func writeHTTP(ctx context.Context, address, token string) (highest elector.Token, refused bool, err error) {
	request, err := http.NewRequestWithContext(ctx, "POST", address, strings.NewReader("an entry"))
	if err != nil {
		return 0, false, err
	}
	request.Header.Set(elector.TokenHeader, token)
	request.Header.Set(fencehttp.ElectionHeader, "bookkeeper")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, false, err
	}
	defer answer.Body.Close()
	highest, refused = fencehttp.Refused(answer)
	if !refused && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", answer.Status)
	}
	return highest, refused, err
}

func writeGRPC(ctx context.Context, address, token string) (highest elector.Token, refused bool, err error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return 0, false, err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, fencegrpc.TokenKey, token, fencegrpc.ElectionKey, "bookkeeper")
	var trailer metadata.MD
	err = conn.Invoke(ctx, "/Book/Append", wrapperspb.String("an entry"), &emptypb.Empty{}, grpc.Trailer(&trailer))
	if highest, refused = fencegrpc.Refused(err, trailer); refused {
		err = nil
	}
	return highest, refused, err
}
