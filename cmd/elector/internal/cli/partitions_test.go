package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/partition"
)

// partitions resize changes a group without members, and refuses what it cannot change.
func TestResize(t *testing.T) {
	url := "file://" + t.TempDir()
	env := []string{"ELECTOR_URL=" + url}
	if r := run(t, env, "partitions", "resize", "orders", "0"); r.code != exitUsage || !strings.Contains(r.err, "from 1 to") {
		t.Errorf("no partitions: %+v", r)
	}
	if r := run(t, env, "partitions", "resize", "orders", "4"); r.code != exitUsage || !strings.Contains(r.err, "no plan orders.plan") {
		t.Errorf("a group that never was: %+v", r)
	}
	joined := func(partitions int) (owned chan int, leave func()) {
		g, err := partition.Join(t.Context(), url, "orders", &partition.Options{Partitions: partitions, Elector: elector.Options{ID: "a", TTL: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
		if err != nil {
			t.Fatal(err)
		}
		owned = make(chan int, partitions)
		go g.Run(context.Background(), func(ctx context.Context, l *partition.Lease) error {
			owned <- l.Partition()
			<-ctx.Done()
			return nil
		})
		return owned, func() { g.Close() }
	}
	owned, leave := joined(2)
	<-owned
	<-owned
	if r := run(t, env, "partitions", "resize", "orders", "4"); r.code != exitHeld || !strings.Contains(r.err, `member "a" runs`) {
		t.Errorf("a group with a member: %+v", r)
	}
	leave()
	if r := run(t, env, "partitions", "resize", "orders", "4"); r.code != 0 || r.err != "" {
		t.Errorf("a group without members: %+v", r)
	}
	owned, leave = joined(4)
	for range 4 {
		<-owned
	}
	leave()
}

// partitions prints who owns what, and why a partition has no owner.
func TestPartitions(t *testing.T) {
	url := "file://" + t.TempDir()
	env := []string{"ELECTOR_URL=" + url}
	if r := run(t, env, "partitions", "orders"); r.code != exitUsage || !strings.Contains(r.err, `no group "orders"`) {
		t.Errorf("a group that never was: %+v", r)
	}
	g, err := partition.Join(t.Context(), url, "orders", &partition.Options{Partitions: 5, Weight: 2, Elector: elector.Options{ID: "a", Value: "a:1", TTL: 3 * time.Second, Logger: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	owned := make(chan int, 5)
	go g.Run(context.Background(), func(ctx context.Context, l *partition.Lease) error {
		owned <- l.Partition()
		<-ctx.Done()
		return nil
	})
	for range 5 {
		<-owned
	}
	if r := run(t, env, "partitions", "orders"); r.code != 0 || r.out != "a\t0\t2\tready\t5\t5\t+0 -0\t0-4\ta:1\t\n" {
		t.Errorf("a group with a member: %+v", r)
	}
	for _, wrong := range [][]string{{"drain", "orders", "b"}, {"drain", "orders", "a"}, {"drain", "others", "a"}} {
		if r := run(t, env, append([]string{"partitions"}, wrong...)...); r.code != exitUsage || r.err == "" {
			t.Errorf("%q: %+v", wrong, r)
		}
	}
	if r := run(t, env, "partitions", "undrain", "orders", "a"); r.code != 0 {
		t.Errorf("undrain of a member that is not drained: %+v", r)
	}
	r := run(t, env, "partitions", "orders", "--each", "-o", "json")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	var row partitionRow
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &row); err != nil || len(lines) != 5 || row.Partition != 4 || row.Owner != "a" || row.Planned != "a" || row.Token == 0 || row.Since == "" || row.Why != "" {
		t.Errorf("each partition: %+v, %v", r, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := &until{want: "given it up", enough: stop}
	watched := make(chan int)
	go func() {
		tool := &tool{out: seen, err: seen, env: environ(env)}
		watched <- tool.main(ctx, []string{"partitions", "orders", "--watch"})
	}()
	g.Close()
	if code := <-watched; code != 0 {
		t.Errorf("watch ends with %d", code)
	}
	if r := run(t, env, "partitions", "orders"); r.code != exitVacant || r.out != "-\t-\t-\tnone\t5\t-\t-5\t0-4\t\tits last owner has given it up (5)\n" {
		t.Errorf("a group without members: %+v", r)
	}
}

// until is an output that calls enough once it has had what is wanted.
type until struct {
	want   string
	enough func()
}

func (w *until) Write(b []byte) (int, error) {
	if strings.Contains(string(b), w.want) {
		w.enough()
	}
	return len(b), nil
}

func TestRanges(t *testing.T) {
	for want, numbers := range map[string][]int{"": nil, "3": {3}, "0-2,5,7-8": {0, 1, 2, 5, 7, 8}} {
		if got := ranges(numbers); got != want {
			t.Errorf("%v is %q, not %q", numbers, got, want)
		}
	}
}
