package fences

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The example of a consumer, with real processes: one is killed, one is stopped and
// continued, one gets SIGTERM, while orders come. Each order is counted once.
func TestConsumer(t *testing.T) {
	store, err := stores.Start(t.Context(), stores.Postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(); err != nil {
			t.Error(err)
		}
	})
	program := filepath.Join(t.TempDir(), "consumer")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/partitions/consumer")
	build.Dir = "../../.."
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	run := func(arguments ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, arguments...)
		c.Env = append(os.Environ(), "ELECTOR_URL="+store.URL)
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("consumer %v: %v\n%s", arguments, err, said)
		}
		return string(said)
	}
	orders := 0
	add := func() {
		t.Helper()
		orders += 4000
		run("add", "4000")
	}
	// counted waits until at least so many orders are counted.
	counted := func(least int) {
		t.Helper()
		said := ""
		for late := time.Now().Add(3 * time.Minute); time.Now().Before(late); time.Sleep(50 * time.Millisecond) {
			var n int
			said = run("check")
			if _, err := fmt.Sscanf(said, "%d of", &n); err != nil {
				t.Fatal(err)
			}
			if n >= least {
				return
			}
		}
		t.Fatalf("after three minutes: %s", said)
	}
	work := func() *process { return begin(t, program, store.URL, "work") }

	add()
	killed, frozen, leaver := work(), work(), work()
	counted(1)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	add()
	counted(orders)
	add()
	if err := child.Freeze(frozen.Process.Pid); err != nil {
		t.Fatal(err)
	}
	counted(orders)
	add()
	work()
	if err := child.Thaw(frozen.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := leaver.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := leaver.end(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	counted(orders)
	if said := run("check"); !strings.Contains(said, fmt.Sprintf("%d of %d orders are counted, 0 totals are wrong", orders, orders)) {
		t.Error(said)
	}
}
