//go:build unix

package cli

import (
	"bytes"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cron mails what a job prints: with --quiet neither the winner nor the loser prints.
func TestQuiet(t *testing.T) {
	dir := t.TempDir()
	leader := elect(dir, "echo leads; read x", "--ttl", "1m", "--quiet")
	var said bytes.Buffer
	leader.Stderr = &said
	in, err := leader.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun(t, leader)
	for flags, code := range map[string]int{"--try -q": 75, "--wait 300ms --quiet": 75, "--try --held-code 0": 0, "--wait 300ms --held-code 3": 3} {
		loser := elect(dir, "exit 9", strings.Fields(flags)...)
		var out bytes.Buffer
		loser.Stdout, loser.Stderr = &out, &out
		if got := codeAfter(t, loser); got != code || out.Len() > 0 {
			t.Errorf("%s: exit code %d; want %d; it prints %q", flags, got, code, &out)
		}
	}
	in.Close()
	if exit(leader); said.Len() > 0 {
		t.Errorf("the winner prints %q", &said)
	}
	broken := elect("", "exit 9", "--quiet")
	said.Reset()
	broken.Stderr = &said
	if code := codeAfter(t, broken); code != exitUsage || said.Len() == 0 {
		t.Errorf("a broken store: exit code %d, %q; want %d and a line", code, &said, exitUsage)
	}
}

// --wait covers a store that does not answer at the start.
func TestWaitCoversTheStart(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := silent.Addr().String()
	silent.Close()
	began := time.Now()
	c := elect("", "exit 9", "--wait", "1500ms")
	c.Env = append(c.Env, "ELECTOR_URL=etcd://"+address)
	var said bytes.Buffer
	c.Stderr = &said
	if code := codeAfter(t, c); code != exitUnavailable || time.Since(began) < 500*time.Millisecond || !strings.Contains(said.String(), address) {
		t.Errorf("a store that does not answer: %d after %v, %q; want %d after --wait", code, time.Since(began), &said, exitUnavailable)
	}
	c = elect("/nowhere/elections", "exit 9", "--wait", "1h")
	if code := codeAfter(t, c); code != exitMisconfigured {
		t.Errorf("an error that does not pass: %d; want %d at once", code, exitMisconfigured)
	}
}

// A signal ends run while it waits for a store that does not answer.
func TestStopBeforeTheStoreAnswers(t *testing.T) {
	accepts, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer accepts.Close()
	c := elect("", "exit 9", "--wait", "1h")
	c.Env = append(c.Env, "ELECTOR_URL=etcd://"+accepts.Addr().String())
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := accepts.Accept() // so it has begun
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	signalTo(t, c, syscall.SIGTERM)
	if code := exit(c); code != 0 {
		t.Errorf("exit code %d; want 0", code)
	}
}

// Told to stop, run ends by the SIGTERM that has ended the command: 143 to a shell, and
// no failure to systemd. A command that fails by itself has its own code.
func TestEndsAsTheCommand(t *testing.T) {
	c := elect(t.TempDir(), "echo up; exec sleep 60")
	begun(t, c)
	signalTo(t, c, syscall.SIGTERM)
	c.Wait()
	if s := c.ProcessState.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v; want SIGTERM", c.ProcessState)
	}
	c = elect(t.TempDir(), "kill -TERM $$")
	if code := codeAfter(t, c); code != 143 {
		t.Errorf("exit code %d; want 143", code)
	}
}

// systemd is told what run does.
func TestStatus(t *testing.T) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c := elect(t.TempDir(), "echo up; exec sleep 60")
	c.Env = append(c.Env, "NOTIFY_SOCKET="+socket.LocalAddr().String())
	begun(t, c)
	socket.SetReadDeadline(time.Now().Add(20 * time.Second))
	text := make([]byte, 200)
	for _, want := range []string{"READY=1\nSTATUS=campaigning", "STATUS=leads \"a\" with token ", "STOPPING=1\n", "STATUS=draining"} {
		if n, err := socket.Read(text); err != nil || !strings.HasPrefix(string(text[:n]), want) {
			t.Fatalf("systemd gets %q, %v; want %s", text[:n], err, want)
		}
		if strings.HasPrefix(want, "STATUS=leads") {
			signalTo(t, c, syscall.SIGTERM)
		}
	}
	exit(c)
}

// The command gets no password by default.
func TestEnvironmentWithoutPassword(t *testing.T) {
	for url, kept := range map[string]bool{
		"etcd://host:2379": true, "file:///var/lib/x": true, "postgres://app@db/app": true, "postgres:///app?host=/run&sslmode=disable": true,
		"postgres://app:s3cret@db/app": false, "postgres://db/app?password=s3cret": false, "consul://host?token=s3cret": false,
		"etcd://u:p@ss@host/%zz": false, "azureblob://c?account_key=x": false,
	} {
		own := []string{"A=b", "ELECTOR_URL=" + url, "ELECTOR_URL_FILE=/etc/elector.url"}
		if got := environment(own, false, "a", "id", 2); slices.Contains(got, own[1]) != kept || !slices.Contains(got, own[2]) {
			t.Errorf("%s: kept is %v; want %v", url, !kept, kept)
		}
		if got := environment(own, true, "a", "id", 2); !slices.Contains(got, own[1]) {
			t.Errorf("--keep-url does not keep %s", url)
		}
	}
}

// --wait is for each campaign: after a request, long after the start, run leads again.
func TestWaitIsForEachCampaign(t *testing.T) {
	dir := t.TempDir()
	const wait = 6 * time.Second
	c := elect(dir, `trap "exit 0" TERM; echo up; while :; do sleep 0.01; done`, "--ttl", "1s", "--wait", wait.String())
	began := time.Now()
	in := begun(t, c)
	time.Sleep(time.Until(began.Add(wait))) // the first one is over
	run(t, []string{"ELECTOR_URL=file://" + dir}, "resign", "a", "--wait", "1s")
	if line, err := in.ReadString('\n'); line != "up\n" {
		t.Errorf("%q, %v; want it to lead again", line, err)
	}
}
