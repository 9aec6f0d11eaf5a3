package raw_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/leak"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestMain(m *testing.M) {
	child.Prepare()
	for key, value := range map[string]string{"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_EC2_METADATA_DISABLED": "true"} {
		os.Setenv(key, value)
	}
	leak.Main(m)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What an adapter writes can be taken away and put back, and the adapter finds
// what was done.
func TestRecords(t *testing.T) {
	stores.AnyCredentials()
	for _, kind := range stores.Kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, err := stores.StartLocal(t.Context(), kind)
			must(t, err)
			t.Cleanup(func() { must(t, s.Stop()) })
			b, err := backends.Open(t.Context(), s.URL)
			must(t, err)
			t.Cleanup(func() { must(t, b.Close()) })
			records, closeRecords, err := raw.Open(t.Context(), s)
			must(t, err)
			t.Cleanup(func() { must(t, closeRecords()) })
			ctx := t.Context()

			if got, err := records.Get(ctx, "a"); got != nil || err != nil {
				t.Fatalf("before anything was written Get returns %q, %v", got, err)
			}
			must(t, records.Delete(ctx, "a"))
			first := backends.Record{Holder: "A", Token: 7, TTL: 15 * time.Second, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}
			first, err = b.Swap(ctx, "a", backends.Record{}, first)
			must(t, err)
			backup, err := records.Get(ctx, "a")
			must(t, err)
			next := first
			next.Attempt.Sequence, next.Value = 2, "renewed"
			next, err = b.Swap(ctx, "a", first, next)
			must(t, err)
			if now, err := records.Get(ctx, "a"); err != nil || bytes.Equal(now, backup) {
				t.Fatalf("after a renewal Get returns %q, %v", now, err)
			}

			changed := false // by another, in between
			edited, err := raw.Edit(ctx, records, "a", func(r *backends.Record) error {
				if !changed {
					changed = true
					again := next
					again.Attempt.Sequence = 3
					next, err = b.Swap(ctx, "a", next, again)
					must(t, err)
				}
				r.Holder, r.TTL, r.RenewEvery, r.Value = "", 30*time.Second, 2*time.Second, "by hand"
				r.Extensions, err = r.Extensions.With("k_x", "kept")
				return err
			})
			must(t, err)
			shown, err := b.Load(ctx, "a")
			must(t, err)
			read, err := raw.Load(ctx, records, "a")
			must(t, err)
			if shown.Version, edited.Version = "", ""; shown != edited || read != edited || edited.Attempt.Sequence != 3 || edited.Value != "by hand" {
				t.Fatalf("what was edited, %+v, reads as %+v, and by the adapter as %+v", edited, read, shown)
			}
			if _, err := b.Swap(ctx, "a", next, next); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("a renewal of a state before the edit gives %v", err)
			}
			if done, err := records.Replace(ctx, "a", backup, backup); done || err != nil {
				t.Errorf("what does not stand any more is replaced: %v, %v", done, err)
			}

			must(t, records.Put(ctx, "a", backup))
			restored, err := b.Load(ctx, "a")
			must(t, err)
			if restored.Attempt != first.Attempt || restored.Holder != "A" || restored.Value != "" {
				t.Fatalf("what was restored reads as %+v", restored)
			}
			must(t, records.Delete(ctx, "a"))
			if gone, err := b.Load(ctx, "a"); err != nil || gone.Exists() {
				t.Fatalf("what was deleted reads as %+v, %v", gone, err)
			}
			must(t, records.Put(ctx, "a", backup))
			if restored, err = b.Load(ctx, "a"); err != nil || restored.Attempt != first.Attempt {
				t.Fatalf("what was restored after a deletion reads as %+v, %v", restored, err)
			}
			if _, err := b.Swap(ctx, "a", next, next); !errors.Is(err, backends.ErrConflict) {
				t.Errorf("a renewal of a state before the restoration gives %v", err)
			}
		})
	}
}
