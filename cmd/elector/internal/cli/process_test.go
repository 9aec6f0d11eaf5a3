//go:build unix

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
)

// The test binary is the command elector too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "run" || os.Args[1] == guardianArgument) {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// elect makes a command that runs elector run of a shell script, on a store in dir.
func elect(dir, script string, flags ...string) *exec.Cmd {
	args := append([]string{"run", "a"}, flags...)
	c := exec.Command("/proc/self/exe", append(args, "--", "/bin/sh", "-c", script)...)
	if self, err := os.Executable(); err == nil {
		c.Path = self
	}
	c.Env = append(os.Environ(), "ELECTOR_URL=file://"+dir)
	return c
}

func codeAfter(t *testing.T, c *exec.Cmd) int {
	t.Helper()
	err := c.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode()
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		script string
		code   int
	}{
		{"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + 15}, {"kill -KILL $$", 128 + 9},
		{`test "$ELECTOR_ELECTION" = a && test "$ELECTOR_TOKEN" -gt 0 && test -n "$ELECTOR_ID"`, 0},
	} {
		if code := codeAfter(t, elect(dir, c.script)); code != c.code {
			t.Errorf("%s: exit code %d; want %d", c.script, code, c.code)
		}
	}
}

// begun starts a command and waits for a line of its.
func begun(t *testing.T, c *exec.Cmd) *bufio.Reader {
	t.Helper()
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	in := bufio.NewReader(out)
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return in
}

func signalTo(t *testing.T, c *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := c.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func exit(c *exec.Cmd) int {
	c.Wait()
	return c.ProcessState.ExitCode()
}

func TestHeld(t *testing.T) {
	dir := t.TempDir()
	leader := elect(dir, "echo leads; read x", "--ttl", "1m")
	in, err := leader.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun(t, leader)
	for _, c := range []struct {
		flags string
		code  int
	}{{"--try", 75}, {"--wait 300ms", 75}, {"--try --held-code 0", 0}, {"--wait 300ms --held-code 3", 3}} {
		if code := codeAfter(t, elect(dir, "exit 9", strings.Fields(c.flags)...)); code != c.code {
			t.Errorf("%s: exit code %d; want %d", c.flags, code, c.code)
		}
	}
	in.Close()
	leader.Wait()
	if code := codeAfter(t, elect(dir, "exit 9", "--try")); code != 9 {
		t.Errorf("once it was resigned: exit code %d; want 9", code)
	}
}

func TestSignals(t *testing.T) {
	dir := t.TempDir()
	graceful := elect(dir, `trap "exit 5" TERM; echo up; while :; do sleep 0.01; done`)
	begun(t, graceful)
	signalTo(t, graceful, syscall.SIGTERM)
	if code := exit(graceful); code != 5 {
		t.Errorf("a command that obeys SIGTERM: %d; want 5", code)
	}
	stubborn := elect(dir, `trap "" TERM; echo up; while :; do sleep 0.01; done`, "--stop-grace", "100ms")
	begun(t, stubborn)
	signalTo(t, stubborn, syscall.SIGTERM)
	if code := exit(stubborn); code != 137 {
		t.Errorf("a command that ignores SIGTERM: %d; want 137", code)
	}
	twice := elect(dir, `trap "echo told" TERM; echo up; while :; do sleep 0.01; done`, "--stop-grace", "1h")
	in := begun(t, twice)
	signalTo(t, twice, syscall.SIGTERM)
	in.ReadString('\n')
	signalTo(t, twice, syscall.SIGINT)
	if code := exit(twice); code != 137 {
		t.Errorf("two signals: %d; want 137", code)
	}
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP) // under nohup the command would inherit that it is ignored
	defer signal.Stop(hup)
	reload := elect(dir, `trap "exit 6" HUP; echo up; while :; do sleep 0.01; done`)
	begun(t, reload)
	signalTo(t, reload, syscall.SIGHUP)
	if code := exit(reload); code != 6 {
		t.Errorf("SIGHUP is passed on: %d; want 6", code)
	}
	stopped := elect(dir, `trap "exit 8" TERM
		(until grep -q "^State:.T" /proc/$$/status; do sleep 0.01; done; echo stopped) &
		kill -STOP $$; while :; do sleep 0.01; done`, "--stop-grace", "1h")
	begun(t, stopped)
	signalTo(t, stopped, syscall.SIGTERM)
	if code := exit(stopped); code != 8 {
		t.Errorf("a stopped command learns of SIGTERM: %d; want 8", code)
	}
}

// Bytes that are not UTF-8 reach the command, and a closed stderr does no harm.
func TestBytesAndClosedStderr(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	in.Close()
	c := elect(t.TempDir(), `test "$1" = "$(printf 'a\377')" && test "$ODD" = "$(printf 'b\376')"`)
	c.Args = append(c.Args, "sh", "a\xff")
	c.Env = append(c.Env, "ODD=b\xfe")
	c.Stderr = out
	if code := codeAfter(t, c); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A reader of stderr that hangs costs no lease: nothing of it is read here.
func TestFullStderr(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out.SetWriteDeadline(time.Now().Add(time.Second))
	for err == nil {
		_, err = out.Write(make([]byte, 4096))
	}
	c := elect(t.TempDir(), "exit 4")
	c.Stderr = out
	if code := codeAfter(t, c); code != 4 {
		t.Errorf("exit code %d; want 4", code)
	}
}

// A store that does not answer ends the command before its lease ends, whatever the
// command's exit code.
func TestLoss(t *testing.T) {
	for name, once := range map[string]bool{"campaigns again": false, "ends with 70": true} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			flags := []string{"--ttl", "1s"}
			if once { // a lease that a slow machine loses before is not won again
				flags = []string{"--ttl", "5s", "--once"}
			}
			c := elect(dir, `trap "exit 0" TERM; echo up; while :; do sleep 0.01; done`, flags...)
			in := begun(t, c)
			lock, err := os.Open(filepath.Join(dir, "a.lock"))
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
				t.Fatal(err)
			}
			if once {
				defer time.AfterFunc(20*time.Second, func() { c.Process.Kill() }).Stop()
				if code := exit(c); code != 70 {
					t.Errorf("exit code %d; want 70", code)
				}
				return
			}
			e, err := elector.Open(context.Background(), "file://"+dir, "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			for l, err := range e.Observe(context.Background()) {
				if err != nil {
					t.Fatal(err)
				}
				if l.Lapsed {
					break // so the command has ended
				}
			}
			if err := lock.Close(); err != nil {
				t.Fatal(err)
			}
			if line, err := in.ReadString('\n'); line != "up\n" {
				t.Errorf("%q, %v; want it to lead again", line, err)
			}
		})
	}
}

func TestReadyBeforeItLeads(t *testing.T) {
	dir, sockets := t.TempDir(), t.TempDir()
	leader := elect(dir, "echo up; read x")
	leader.Stdin, _, _ = os.Pipe()
	begun(t, leader)
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(sockets, "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	waits := elect(dir, "exit 9")
	waits.Env = append(waits.Env, "NOTIFY_SOCKET="+socket.LocalAddr().String())
	if err := waits.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 100)
	socket.SetReadDeadline(time.Now().Add(20 * time.Second))
	n, err := socket.Read(text)
	if err != nil || string(text[:n]) != "READY=1\nSTATUS=campaigning for \"a\"" {
		t.Errorf("systemd gets %q, %v; want READY=1", text[:n], err)
	}
	signalTo(t, waits, syscall.SIGTERM)
	if n, err := socket.Read(text); err != nil || !strings.HasPrefix(string(text[:n]), "STOPPING=1\n") {
		t.Errorf("systemd gets %q, %v; want STOPPING=1", text[:n], err)
	}
	if code := exit(waits); code != 0 {
		t.Errorf("told to stop while it waits: %d; want 0", code)
	}
}

// Told to stop before --at-least is over, run leaves the election to lapse.
func TestAtLeast(t *testing.T) {
	dir := t.TempDir()
	c := elect(dir, `trap "" TERM; echo done`, "--at-least", "1h", "--ttl", "1m")
	begun(t, c)
	signalTo(t, c, syscall.SIGTERM)
	if code := exit(c); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
	e, err := elector.Open(context.Background(), "file://"+dir, "a", &elector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if l, err := e.Leader(context.Background()); err != nil || l.Vacant() {
		t.Errorf("%+v, %v; want it held", l, err)
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	var got []string
	for _, ran := range []time.Duration{0, 0, 0, time.Hour, 0} {
		got = append(got, fmt.Sprint(b.after(ran)))
	}
	if s := strings.Join(got, " "); s != "1s 2s 4s 0s 1s" {
		t.Errorf("pauses %s", s)
	}
}

// A request to resign stops the command, keeps the election meanwhile, and moves it
// to another machine.
func TestMoved(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--ttl", "1m", "--renew-every", "100ms", "--request-timeout", "100ms"}
	first := elect(dir, `trap "echo told; read x; exit 0" TERM; echo up; while :; do sleep 0.01; done`, flags...)
	finish, err := first.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := begun(t, first)
	moved := make(chan result, 1)
	env := []string{"ELECTOR_URL=file://" + dir}
	go func() { moved <- run(t, env, "resign", "a", "-o", "json") }()
	if line, err := out.ReadString('\n'); line != "told\n" {
		t.Fatalf("%q, %v", line, err)
	}
	// The command hears of the end at once; the record says so after the next write.
	for {
		r := run(t, env, "leader", "a")
		if r.code == 0 && strings.HasSuffix(r.out, "(draining)\n") {
			break
		}
		if r.code != 0 || t.Context().Err() != nil {
			t.Fatalf("while the command ends: %+v", r)
		}
	}
	finish.Close()
	second := elect(dir, "echo up; read x", flags...)
	in, err := second.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun(t, second)
	if r := <-moved; r.code != 0 || !strings.Contains(r.out, `"state":"held"`) || r.err != "" {
		t.Errorf("resign: %+v", r)
	}
	in.Close()
	second.Wait()
	if line, err := out.ReadString('\n'); line != "up\n" {
		t.Errorf("once another one has led, the first one leads again: %q, %v", line, err)
	}
	signalTo(t, first, syscall.SIGTERM)
	if code := exit(first); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// lock keeps a file's election from being written, until unlock is called.
func lock(t *testing.T, dir, name string) (unlock func()) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, name+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}
