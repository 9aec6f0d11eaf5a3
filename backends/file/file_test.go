package file

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/leak"
)

// watchdog bounds a wait for something that must happen; it measures nothing.
const watchdog = time.Minute

// TestMain lets the test binary be another process that holds a lock: it says
// so, and keeps it until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("FILE_TEST_HOLD_LOCK"); path != "" {
		lock, err := tryLock(path)
		fmt.Println(lock != nil, err)
		bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}
	leak.Main(m)
}

func handle(t testing.TB, dir string) *Backend {
	t.Helper()
	h, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func record(holder string, token uint64) backends.Record {
	return backends.Record{Holder: holder, Token: token, TTL: time.Second, RenewEvery: time.Second / 4,
		Attempt: backends.Attempt{Nonce: holder, Sequence: token}}
}

func swap(t testing.TB, b backends.Backend, name string, prev, next backends.Record) backends.Record {
	t.Helper()
	r, err := b.Swap(context.Background(), name, prev, next)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func load(t testing.TB, b backends.Backend, name string) backends.Record {
	t.Helper()
	r, err := b.Load(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// names lists the directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestSwapAndLoad(t *testing.T) {
	dir := t.TempDir()
	a, b := handle(t, dir), handle(t, dir)
	if r := load(t, a, "e"); r != (backends.Record{}) {
		t.Fatalf("a record that was never written is %+v", r)
	}
	one := swap(t, a, "e", backends.Record{}, record("a", 1))
	if r := load(t, b, "e"); r != one {
		t.Fatalf("loaded %+v, swapped %+v", r, one)
	}
	two := swap(t, b, "e", one, record("b", 2))
	for _, prev := range []backends.Record{{}, one} {
		if _, err := a.Swap(context.Background(), "e", prev, record("a", 3)); err != backends.ErrConflict {
			t.Errorf("a swap on an old version returned %v", err)
		}
	}
	if r := load(t, a, "e"); r != two {
		t.Errorf("a conflict changed the record to %+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "e.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Swap(context.Background(), "e", two, record("a", 3)); err != backends.ErrConflict {
		t.Errorf("a swap on a deleted record returned %v", err)
	}
	swap(t, a, "e", backends.Record{}, record("a", 4))
	if got, want := names(t, dir), []string{"e.json", "e.lock"}; !slices.Equal(got, want) {
		t.Errorf("the directory has %q, not %q", got, want)
	}
}

func TestRace(t *testing.T) {
	dir := t.TempDir()
	handles := []*Backend{handle(t, dir), handle(t, dir)}
	var prev backends.Record
	for round := range 5 {
		start := make(chan struct{})
		var wg sync.WaitGroup
		var mutex sync.Mutex
		var winners []backends.Record
		for i := range 50 {
			wg.Go(func() {
				<-start
				r, err := handles[i%2].Swap(context.Background(), "e", prev, record(fmt.Sprint("c", i), uint64(round+1)))
				if err == nil {
					mutex.Lock()
					winners = append(winners, r)
					mutex.Unlock()
				} else if err != backends.ErrConflict {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		close(start)
		wg.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d has %d winners", round, len(winners))
		}
		if prev = load(t, handles[0], "e"); prev != winners[0] {
			t.Fatalf("round %d: the record is %+v, the winner wrote %+v", round, prev, winners[0])
		}
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("left behind: %q", got)
	}
}

// TestLockHeld: a lock that another process keeps ends a call at its deadline,
// changes nothing, and is free when that process dies.
func TestLockHeld(t *testing.T) {
	dir := t.TempDir()
	h := handle(t, dir)
	prev := swap(t, h, "e", backends.Record{}, record("a", 1))

	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "FILE_TEST_HOLD_LOCK="+filepath.Join(dir, "e.lock"))
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "true <nil>\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	_, err = h.Swap(ctx, "e", prev, record("a", 2))
	if !errors.Is(err, backends.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "e.lock") {
		t.Errorf("a swap while another process has the lock: %v", err)
	}
	if r := load(t, h, "e"); r != prev {
		t.Errorf("it changed the record to %+v", r)
	}
	swap(t, h, "other", backends.Record{}, record("a", 1)) // elections do not delay each other

	done := make(chan error, 1)
	go func() {
		_, err := h.Swap(context.Background(), "e", prev, record("a", 3))
		done <- err
	}()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("after its death: %v", err)
		}
	case <-time.After(watchdog):
		t.Fatal("the lock of a dead process was not freed")
	}
}

func TestCancelled(t *testing.T) {
	dir := t.TempDir()
	h := handle(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Load(ctx, "e"); !errors.Is(err, context.Canceled) {
		t.Errorf("Load: %v", err)
	}
	if _, err := h.Swap(ctx, "e", backends.Record{}, record("a", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Swap: %v", err)
	}
	if err := h.replace(ctx, "e", "", filepath.Join(dir, "none")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up before the rename: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	h := handle(t, dir)
	write := func(content string) func(string) error {
		return func(path string) error { return os.WriteFile(path, []byte(content), 0o600) }
	}
	elsewhere := filepath.Join(t.TempDir(), "record")
	if err := os.WriteFile(elsewhere, backends.Encode("symlink", record("a", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"empty":     write(""),
		"garbage":   write("hello"),
		"nested":    write(strings.Repeat("[", 60000)),
		"other":     write(string(backends.Encode("another", record("a", 1)))),
		"trailing":  write(string(backends.Encode("trailing", record("a", 1))) + "{}"),
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"symlink":   func(path string) error { return os.Symlink(elsewhere, path) },
		"dangling":  func(path string) error { return os.Symlink(elsewhere+"-none", path) },
		"huge": func(path string) error { // sparse: 1 TB would not fit into memory
			if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
				return err
			}
			return os.Truncate(path, 1<<40)
		},
	} {
		path := filepath.Join(dir, name+".json")
		if err := make(path); err != nil {
			t.Fatal(name, err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(name, err)
		}
		if r, err := h.Load(context.Background(), name); !errors.Is(err, backends.ErrForeignRecord) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: loaded %+v, %v", name, r, err)
		}
		for _, prev := range []backends.Record{{}, {Version: "x"}} {
			_, err := h.Swap(context.Background(), name, prev, record("a", 2))
			if !errors.Is(err, backends.ErrConflict) && !errors.Is(err, backends.ErrForeignRecord) {
				t.Errorf("%s: swapped with %v", name, err)
			}
		}
		if err := watch(t, h, name).ended(); !errors.Is(err, backends.ErrForeignRecord) {
			t.Errorf("%s: Watch returned %v", name, err)
		}
		after, err := os.Lstat(path)
		if err != nil || !os.SameFile(before, after) || before.Size() != after.Size() || before.Mode() != after.Mode() {
			t.Errorf("%s: it was touched", name)
		}
	}
}

// TestLockFileForeign: something else in the place of the lock file.
func TestLockFileForeign(t *testing.T) {
	dir := t.TempDir()
	h := handle(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "dir.lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x.lock", filepath.Join(dir, "link.lock")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dir", "link"} {
		if _, err := h.Swap(context.Background(), name, backends.Record{}, record("a", 1)); !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNames(t *testing.T) {
	dir := t.TempDir()
	h := handle(t, dir)
	for _, name := range []string{"", ".", "..", "../x", "a/b", "/etc/x", "a\x00b", ".tmp-1", "ä", "a b", `a\b`, strings.Repeat("a", 10000)} {
		if _, err := h.Load(context.Background(), name); !errors.Is(err, backends.ErrName) {
			t.Errorf("Load %.20q: %v", name, err)
		}
		if _, err := h.Swap(context.Background(), name, backends.Record{}, record("a", 1)); !errors.Is(err, backends.ErrName) {
			t.Errorf("Swap %.20q: %v", name, err)
		}
		if err := watch(t, h, name).ended(); !errors.Is(err, backends.ErrName) {
			t.Errorf("Watch %.20q: %v", name, err)
		}
	}
	good := []string{"a", "a.json", "a.lock", "a.json.lock", "a.", "-a", "a.lock.json", strings.Repeat("a", backends.MaxName)}
	written := map[string]backends.Record{}
	for i, name := range good {
		written[name] = swap(t, h, name, backends.Record{}, record("a", uint64(i+1)))
	}
	for _, name := range good {
		if r := load(t, h, name); r != written[name] {
			t.Errorf("%s: loaded %+v", name, r)
		}
	}
	if got := len(names(t, dir)); got != 2*len(good) {
		t.Errorf("%d files for %d elections", got, len(good))
	}
}

func TestURLs(t *testing.T) {
	dir := t.TempDir()
	spaced := filepath.Join(dir, "a b#?%")
	for raw, want := range map[string]string{
		"file://" + dir:                                   dir,
		"file://localhost" + dir:                          dir,
		"file:" + dir:                                     dir,
		"file://" + dir + "/?create=false":                dir,
		(&url.URL{Scheme: "file", Path: spaced}).String(): spaced,
		"file://" + dir + "/new?create=true":              filepath.Join(dir, "new"),
	} {
		b, err := backends.Open(context.Background(), raw)
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		swap(t, b, "url", load(t, b, "url"), record("a", 1+load(t, b, "url").Token))
		if _, err := os.Stat(filepath.Join(want, "url.json")); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if u, err := url.Parse(b.Describe().Store); err != nil || u.Path != want {
			t.Errorf("%s describes itself as %s", raw, b.Describe().Store)
		}
		b.Close()
	}
	for _, raw := range []string{"file:", "file://", "file:///", "file:///..", "file:relative/dir", "file://relative/dir",
		"file://user:secret@localhost" + dir, "file://" + dir + "#x", "file://" + dir + "?Create=false", "file://" + dir + "?create=x", "file:///a%00b"} {
		b, err := backends.Open(context.Background(), raw)
		if b != nil || !errors.Is(err, backends.ErrURL) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", raw, b, err)
		}
	}
}

// TestUnusable: not by permission bits, which do not bind root.
func TestUnusable(t *testing.T) {
	dir := t.TempDir()
	notDir := filepath.Join(dir, "file")
	if err := os.WriteFile(notDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for doing, err := range map[string]error{
		"a file":         second(New(notDir)),
		"below a file":   second(New(filepath.Join(notDir, "x"))),
		"no parent":      second(New(filepath.Join(dir, "x", "y"))),
		"create=false":   second(open(context.Background(), filepath.Join(dir, "x"), existing)),
		"relative":       second(New("x")),
		"very long path": second(New(filepath.Join(dir, strings.Repeat("x", 300)))),
	} {
		if !errors.Is(err, backends.ErrMisconfigured) {
			t.Errorf("%s: %v", doing, err)
		}
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("made %q", got)
	}
}

func second(_ *Backend, err error) error { return err }

func TestDirectoryGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	h := handle(t, dir)
	prev := swap(t, h, "e", backends.Record{}, record("a", 1))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Load(context.Background(), "e"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Load returned %+v, %v: a missing directory is no vacancy", r, err)
	}
	if _, err := h.Swap(context.Background(), "e", prev, record("a", 2)); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Swap: %v", err)
	}
	if err := watch(t, h, "e").ended(); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Watch: %v", err)
	}
}

func TestErrors(t *testing.T) {
	for kind, errs := range map[error][]error{
		backends.ErrDenied:      {os.ErrPermission},
		backends.ErrReadOnly:    {syscall.EROFS},
		backends.ErrUnavailable: {syscall.ENOSPC, os.ErrNotExist, errors.New("what?")},
	} {
		for _, err := range errs {
			if advice, got := newBackend("/x").classify(&os.PathError{Op: "open", Path: "/x", Err: err}); got != kind || advice == "" {
				t.Errorf("%v is %v, with the advice %q", err, got, advice)
			}
		}
	}
	reader := newBackend("/x")
	reader.base.SetReadOnly(true)
	if advice, kind := reader.classify(os.ErrPermission); kind != backends.ErrDenied || !strings.Contains(advice, "read and search the directory") || strings.Contains(advice, "read, write") {
		t.Errorf("a reader without a right: %q, %v", advice, kind)
	}
}

// TestStale: what killed processes left is removed, what runs is not.
func TestStale(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-2 * staleAfter)
	for _, name := range []string{temporaryPrefix + "old", temporaryPrefix + "new", "old.json"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "new") {
			if err := os.Chtimes(path, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	handle(t, dir)
	if got, want := names(t, dir), []string{temporaryPrefix + "new", "old.json"}; !slices.Equal(got, want) {
		t.Errorf("left %q, not %q", got, want)
	}
}

func TestClose(t *testing.T) {
	h := handle(t, t.TempDir())
	for range 2 {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Load(context.Background(), "e"); !errors.Is(err, backends.ErrUnavailable) {
		t.Errorf("Load after Close: %v", err)
	}
}

// BenchmarkSwap is one renewal; BenchmarkUnderLock is the part of it in which
// a stopped process would delay the others.
func BenchmarkSwap(b *testing.B) {
	h := handle(b, b.TempDir())
	var prev backends.Record
	for i := 0; b.Loop(); i++ {
		prev = swap(b, h, "e", prev, record("a", uint64(i+1)))
	}
}

func BenchmarkUnderLock(b *testing.B) {
	h := handle(b, b.TempDir())
	prev := swap(b, h, "e", backends.Record{}, record("a", 1))
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		content := backends.Encode("e", record("a", uint64(i+2)))
		temporary, err := h.writeTemporary(content)
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if err := h.exchange(context.Background(), "e", prev.Version, temporary); err != nil {
			b.Fatal(err)
		}
		prev.Version = backends.Version(content)
	}
}
