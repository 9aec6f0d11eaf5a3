package stores

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A durable store syncs a change before it acknowledges it, as the store itself
// reports; a quick one does not. Both are asked, so that the question is known to
// be the right one.
func TestDurable(t *testing.T) {
	for kind, syncs := range map[string]func(context.Context, *Store) (float64, error){
		Etcd: func(ctx context.Context, s *Store) (float64, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Address+"/metrics", nil)
			if err != nil {
				return 0, err
			}
			request.Close = true
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			return metric(string(text), "etcd_disk_wal_fsync_duration_seconds_count "), err
		},
		ZooKeeper: func(ctx context.Context, s *Store) (float64, error) {
			text, err := zooKeeperAsk(ctx, s.Address, "mntr")
			return metric(text, "zk_cnt_fsynctime\t"), err
		},
	} {
		for name, m := range map[string]manner{"durable": durable, "quick": quick} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				s, err := programs[kind](t.Context(), m)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Stop()
				b, err := backends.Open(t.Context(), s.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer b.Close()
				before, err := syncs(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := b.Swap(t.Context(), "durable", backends.Record{}, backends.Record{Holder: "a", Token: 1, TTL: time.Minute, RenewEvery: time.Second, Attempt: backends.Attempt{Nonce: "n", Sequence: 1}}); err != nil {
					t.Fatal(err)
				}
				after, err := syncs(t.Context(), s)
				if err != nil || after > before != (m == durable) {
					t.Errorf("it synced %v times before a change and %v after it, error %v", before, after, err)
				}
				if settings[kind] == "" {
					t.Error("its settings have no text")
				}
			})
		}
	}
}

// PostgreSQL reports its settings.
func TestDurablePostgres(t *testing.T) {
	for name, m := range map[string]manner{"durable": durable, "quick": quick} {
		s, err := startPostgres(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Stop()
		conn, err := postgresConnect(t.Context(), s.Address, postgresAdmin)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		var on int
		err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_settings
			WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit') AND setting = 'on'`).Scan(&on)
		if err != nil || on == 3 != (m == durable) {
			t.Errorf("%s: %d of three settings are on, error %v", name, on, err)
		}
	}
}

// metric returns the number behind a name, 0 if there is none.
func metric(text, name string) (n float64) {
	if _, behind, ok := strings.Cut("\n"+text, "\n"+name); ok {
		fmt.Sscan(behind, &n)
	}
	return n
}
