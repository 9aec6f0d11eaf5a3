package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
)

// A recipe says how servers of one kind are run.
type recipe struct {
	name    string // of the program and its version
	program string
	account *syscall.Credential // who runs it; nil for ourselves

	// prepare makes what the server needs before its first start, in dir.
	prepare func(ctx context.Context, s *server) error

	// before is called before every start, when s.port is known; it may be nil.
	before func(s *server) error

	// arguments are the program's for a server in s.dir on s.port.
	arguments func(s *server) []string

	// ready asks the server once, and returns nil if it gave an answer that
	// only this very server can give: another one may have taken the port.
	ready func(ctx context.Context, s *server) error

	// quit is the signal that makes it end at once.
	quit syscall.Signal

	// saves is set if it has on its disk what it acknowledged only once it has
	// ended by quit: Kill then uses that.
	saves bool
}

// A server is a process that the tests started, with its folder, port and guard.
type server struct {
	recipe
	dir     string
	port    int
	guard   *guard
	pid     int
	exited  chan struct{} // closed when the process was waited for
	exit    error         // what Wait said, once exited is closed
	told    bool          // we ended it ourselves
	frozen  []int         // the processes that pause stopped
	stopped bool          // stop has run

	logBegins int64 // where in the log this start's part begins
}

const (
	readyWithin = time.Minute      // much longer than it takes: slow machines
	gone        = 10 * time.Second // for processes that were told to end
	portTries   = 5
)

// choosePort is replaced by tests.
var choosePort = freePort

// newServer starts a server in a new temporary folder.
func newServer(ctx context.Context, r recipe) (*server, error) {
	dir, err := os.MkdirTemp("", "elector-store-")
	if err != nil {
		return nil, err
	}
	s := &server{recipe: r, dir: dir, told: true}
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) begin(ctx context.Context) (err error) {
	// Servers print their folder with links resolved; see ready.
	if s.dir, err = filepath.EvalSymlinks(s.dir); err != nil {
		return err
	}
	if s.guard, err = newGuard(serverGuard, s.dir); err != nil {
		return err
	}
	if s.account != nil {
		if err := os.Chown(s.dir, int(s.account.Uid), int(s.account.Gid)); err != nil {
			return err
		}
	}
	if s.prepare != nil {
		if err := s.prepare(ctx, s); err != nil {
			return err
		}
	}
	// Between the choice of a port and its use another process may take it.
	for range portTries {
		if s.port, err = choosePort(); err != nil {
			return err
		}
		if err = s.launch(ctx); !errors.Is(err, errPortTaken) {
			return err
		}
	}
	return fmt.Errorf("%d ports in a row: %w", portTries, err)
}

// PortsVariable is an environment variable with the ports of this process's servers, by
// default 20000-25999. Processes side by side get ports of their own with it.
//
// The default is below the ports that systems give to outgoing connections, and has none
// that a proxy of package network listens on, so that none of these takes one while its
// server is down. The port 12000 below each is such a port too: see chooseZooKeeperPorts.
const PortsVariable = "ELECTOR_TEST_PORTS"

// A portRange has ports and remembers which of them were chosen.
type portRange struct {
	mutex       sync.Mutex
	first, last int
	chosen      []int // the latest, of at most half of the ports
}

func newPortRange(value string) (*portRange, error) {
	if value == "" {
		return &portRange{first: 20000, last: 25999}, nil
	}
	first, last, _ := strings.Cut(value, "-")
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if errors.Join(err, err2) != nil || from < 13024 || to < from || to > 65535 {
		return nil, fmt.Errorf("%s is %q; it may be 20000-20999", PortsVariable, value)
	}
	return &portRange{first: from, last: to}, nil
}

var serverPorts = sync.OnceValues(func() (*portRange, error) { return newPortRange(os.Getenv(PortsVariable)) })

// freePort returns a port that nothing listens on.
func freePort() (int, error) {
	r, err := serverPorts()
	if err != nil {
		return 0, err
	}
	return r.free()
}

// free returns a port that nothing listens on. It returns none again until half of the
// others were chosen too: the server that owns one may be down.
func (r *portRange) free() (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var err error
	count := r.last - r.first + 1
	begin := rand.IntN(count)
	for i := range count {
		port := r.first + (begin+i)%count
		if slices.Contains(r.chosen, port) {
			continue
		}
		var l net.Listener
		if l, err = net.Listen("tcp", loopback(port)); err == nil {
			r.chosen = append(r.chosen, port)
			if len(r.chosen) > count/2 {
				r.chosen = r.chosen[1:]
			}
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no port of 127.0.0.1 from %d to %d is free; end what listens there (ss -ltn shows it): %w", r.first, r.last, err)
}

var errPortTaken = errors.New("the port was taken by another process")

// launch starts the process on s.port and waits until it answers.
func (s *server) launch(ctx context.Context) error {
	log, err := os.OpenFile(s.logPath(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.logBegins, err = log.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if s.before != nil {
		if err := s.before(s); err != nil {
			return err
		}
	}
	cmd := s.cmd(s.program, s.arguments(s)...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := child.Start(cmd); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	exited := make(chan struct{})
	s.pid, s.exited, s.told = cmd.Process.Pid, exited, false
	go func() {
		s.exit = cmd.Wait()
		close(exited)
		cancel() // whatever listens on the port now, it is not worth waiting for
	}()
	s.guard.watch(-s.pid)

	err = until(ctx, 5*time.Second, func(ctx context.Context) error { return s.ready(ctx, s) })
	if err == nil {
		return nil
	}
	if s.hasExited() {
		s.told = true // it is told here and need not be told again by stop
		if taken := s.log(s.logBegins); bytes.Contains(bytes.ToLower(taken), []byte("address already in use")) {
			return errPortTaken
		}
		return s.died()
	}
	err = fmt.Errorf("%s does not answer on port %d: %w%s", s.name, s.port, err, s.logEnd())
	return errors.Join(err, s.end(syscall.SIGKILL))
}

// until asks again and again, for so long each time, until the answer is good or
// ctx ends.
func until(ctx context.Context, attempt time.Duration, ask func(context.Context) error) error {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, attempt)
		err := ask(asking)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-again.C:
		}
	}
}

// owns gives a folder to the server's account.
func (s *server) owns(dir string) error {
	if s.account == nil {
		return nil
	}
	return filepath.WalkDir(dir, func(at string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chown(at, int(s.account.Uid), int(s.account.Gid)))
	})
}

// cmd is a command that runs as the server's account, in its folder and with
// nothing of our environment: servers take options from it.
func (s *server) cmd(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.account}
	return cmd
}

// run runs a command to its end, or kills its process group when ctx ends.
func (s *server) run(ctx context.Context, program string, args ...string) error {
	cmd := s.cmd(program, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := child.Start(cmd); err != nil {
		return err
	}
	s.guard.watch(-cmd.Process.Pid)
	defer context.AfterFunc(ctx, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })()
	err := cmd.Wait()
	s.guard.watch()
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", filepath.Base(program), ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}

func (s *server) process() int { return s.pid }

func (s *server) address() string { return loopback(s.port) }

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

func (s *server) hasExited() bool {
	if s.exited == nil {
		return true
	}
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

func (s *server) logPath() string { return filepath.Join(s.dir, "log") }

// log returns at most the last 4 kB of what the server has printed since the
// position.
func (s *server) log(since int64) []byte {
	f, err := os.Open(s.logPath())
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		since = max(since, info.Size()-4096)
	}
	b, _ := io.ReadAll(io.NewSectionReader(f, since, 4096))
	return b
}

// logEnd is the end of the log as the end of an error.
func (s *server) logEnd() string {
	lines := strings.Split(strings.TrimSpace(string(s.log(0))), "\n")
	lines = lines[max(0, len(lines)-15):]
	if len(lines) == 1 && lines[0] == "" {
		return "; its log is empty"
	}
	return "; its log ends with:\n\t" + strings.Join(lines, "\n\t")
}

func (s *server) died() error {
	how := "exit status 0"
	if s.exit != nil {
		how = s.exit.Error()
	}
	return fmt.Errorf("%s (process %d) died by itself: %s%s", s.name, s.pid, how, s.logEnd())
}
