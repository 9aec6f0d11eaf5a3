package stores

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/child"
)

// fileReader has the URL in the child of TestFileReader.
const fileReader = "ELECTOR_FILE_READER"

// A process of another user reads a directory that its group may read, or that it cannot
// write because no process can. A typo makes no directory.
func TestFileReader(t *testing.T) {
	if storeURL := os.Getenv(fileReader); storeURL != "" {
		readFiles(t, storeURL)
		return
	}
	account, err := unprivileged()
	must(t, err)
	parent, err := os.MkdirTemp("", "elector-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(parent)) })
	must(t, os.Chmod(parent, 0o711))
	dir := filepath.Join(parent, "elections")
	must(t, os.Mkdir(dir, 0o700))
	writable := func(bool) {}
	if account != nil {
		must(t, os.Chown(dir, os.Getuid(), int(account.Gid)))
		must(t, os.Chmod(dir, 0o750|os.ModeSetgid)) // as docs/stores/file.md has it
	} else {
		t.Cleanup(func() { must(t, os.Chmod(dir, 0o700)) })
		writable = func(now bool) { must(t, os.Chmod(dir, map[bool]os.FileMode{true: 0o755, false: 0o555}[now])) }
	}
	writable(true)
	for call, err := range candidateCalls(t, "file://"+dir) {
		if err != nil {
			t.Errorf("a candidate's %s: %v", call, err)
		}
	}
	leadOnce(t, "file://"+dir)
	before := files(t, dir)
	candidate, err := elector.Open(t.Context(), "file://"+dir, readElection, &elector.Options{ID: "next"})
	must(t, err)
	defer candidate.Close()
	writable(false)

	// The test's program is in a directory that others cannot search.
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		self, err = os.ReadFile(os.Args[0])
	}
	must(t, err)
	program := filepath.Join(parent, "reader")
	must(t, os.WriteFile(program, self, 0o755))
	cmd := exec.Command(program, "-test.run=^TestFileReader$")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), fileReader+"=file://"+dir, "ELECTOR_TABLE=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: account}
	output, err := cmd.StdoutPipe()
	must(t, err)
	input, err := cmd.StdinPipe()
	must(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	must(t, child.Start(cmd))
	var lease *elector.Lease
	for lines := bufio.NewScanner(output); lines.Scan(); {
		switch lines.Text() {
		case "lead":
			writable(true)
			lease, err = candidate.TryCampaign(t.Context())
			writable(false)
			must(t, err)
			fmt.Fprintln(input, lease.Token())
		case "resign":
			writable(true)
			must(t, lease.Release(t.Context()))
			writable(false)
		default:
			said.WriteString(lines.Text() + "\n")
		}
	}
	if err := cmd.Wait(); err != nil || lease == nil {
		t.Errorf("the reader: %v\n%s", err, &said)
	}
	if after := files(t, dir); after != before {
		t.Errorf("before the reader the files are %s, and after it %s", before, after)
	}

	typo := filepath.Join(parent, "typo")
	if _, err := backends.OpenReadOnly(t.Context(), "file://"+typo); !errors.Is(err, backends.ErrMisconfigured) || !strings.Contains(err.Error(), "no election has ever used it") {
		t.Errorf("a directory that does not exist: %v", err)
	}
	if _, err := os.Stat(typo); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a reader has made a directory: %v", err)
	}
}

// files returns the names of what is in a directory.
func files(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// readFiles is the reader, which asks its parent for a leader.
func readFiles(t *testing.T, storeURL string) {
	for call, err := range readerCalls(t, storeURL) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := refusedBy(t, storeURL); !errors.Is(err, backends.ErrDenied) {
		t.Errorf("a write: %v", err)
	}
	observe(t, storeURL, func() (token elector.Token) {
		fmt.Println("lead")
		_, err := fmt.Scanln(&token)
		must(t, err)
		return token
	}, func() { fmt.Println("resign") })
}
