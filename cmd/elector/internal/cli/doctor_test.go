package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// doctor prints a line for each check, in each form, and leaves the election
// vacant.
func TestDoctor(t *testing.T) {
	env := []string{"ELECTOR_URL=file://" + t.TempDir()}
	r := run(t, env, "doctor", "-o", "json", "--ttl", "1h")
	if r.code != 0 || r.err != "" {
		t.Fatalf("%+v", r)
	}
	for line := range strings.Lines(r.out) {
		var l map[string]string
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l) != 4 || l["level"] != "ok" || l["check"] == "" || l["seen"] == "" {
			t.Errorf("%v: %s", err, line)
		}
	}
	if r := run(t, env, "leader", "elector-doctor"); r.code != exitVacant {
		t.Errorf("afterwards: %+v", r)
	}
	if r := run(t, env, "doctor", "--ttl", "1h"); !strings.HasPrefix(r.out, "ok\tconnection\tfile://") || strings.Count(strings.SplitN(r.out, "\n", 2)[0], "\t") != 3 {
		t.Errorf("as TSV: %+v", r)
	}
	if r := run(t, env, "doctor", "--ttl", "1h", "-o", "table"); !strings.HasPrefix(r.out, "ok   connection         file://") {
		t.Errorf("as a table: %+v", r)
	}
}

// With --read-only, doctor creates nothing and writes nothing.
func TestDoctorReadOnly(t *testing.T) {
	dir := t.TempDir()
	if r := run(t, nil, "doctor", "--read-only", "--url", "file://"+dir); r.code != 0 || !strings.Contains(r.out, "--read-only") {
		t.Errorf("%+v", r)
	}
	if r := run(t, nil, "list", "--url", "file://"+dir); r.out != "" {
		t.Errorf("it wrote %q", r.out)
	}
	if r := run(t, nil, "doctor", "--read-only", "--url", "file://"+dir+"/missing"); r.code != exitMisconfigured || !strings.HasPrefix(r.out, "fail\tconnection\t") {
		t.Errorf("a directory that is missing: %+v", r)
	}
}

// broken is a store with a defect. It is no BatchSwapper, Lister or Watcher.
type broken struct {
	backends.Backend
	defect string
	stale  *backends.Record // the state before the latest
}

func (b *broken) Load(ctx context.Context, name string) (backends.Record, error) {
	if b.defect == "stale" && b.stale.Exists() {
		return *b.stale, nil
	}
	return b.Backend.Load(ctx, name)
}

func (b *broken) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	now, err := b.Backend.Load(ctx, name)
	if err != nil {
		return now, err
	}
	switch b.defect {
	case "refuses":
		return now, backends.ErrDenied
	case "accepts":
		prev = now
	}
	*b.stale = now
	return b.Backend.Swap(ctx, name, prev, next)
}

func init() {
	backends.Register("broken", func(_ context.Context, u *url.URL) (backends.Backend, error) {
		return &broken{stores[u.Host].Handle(), u.Host, &stale}, nil
	})
}

var (
	stores = map[string]*memory.Store{"sound": memory.NewStore(), "stale": memory.NewStore(), "accepts": memory.NewStore(), "refuses": memory.NewStore()}
	stale  backends.Record
)

// doctor finds a store that breaks a basic rule, and one of others that knows no
// more than these.
func TestDoctorFinds(t *testing.T) {
	for defect, want := range map[string]struct {
		code int
		line string
	}{
		"sound":   {0, "ok\twatch\tnone"},
		"stale":   {exitMisconfigured, "fail\tlinearizable reads\t20 of 20"},
		"accepts": {exitMisconfigured, "fail\tcompare-and-swap\tthe store accepted"},
		"refuses": {exitDenied, "fail\twrite\t"},
	} {
		stale = backends.Record{}
		r := run(t, nil, "doctor", "--ttl", "1h", "--url", "broken://"+defect)
		if r.code != want.code || !strings.Contains("\n"+r.out, "\n"+want.line) {
			t.Errorf("%s: want code %d and %q: %+v", defect, want.code, want.line, r)
		}
	}
	if r := run(t, nil, "list", "--url", "broken://sound"); r.code != exitUsage || !strings.Contains(r.err, "cannot list") {
		t.Errorf("list on a store that cannot: %+v", r)
	}
}
