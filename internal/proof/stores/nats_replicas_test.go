//go:build nats

package stores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// A member that is killed among reads and writes has the same messages as the others after
// it has come back: what a read asks of the servers leaves their counts of sequences alone.
func TestNATSReplicasAgree(t *testing.T) {
	c := cluster(t, NATS)
	ask := c.ask.(natsAsker)
	for i := range c.Members {
		b, err := backends.Open(t.Context(), c.Members[(i+1)%3].URL)
		must(t, err)
		k := clerk{b, c, (i + 1) % 3}
		for range 5 {
			for range 3 {
				_, err := k.Load(t.Context(), "record")
				must(t, err)
			}
			k.mustIncrement(t)
		}
		must(t, b.Close())
		must(t, c.Members[i].Kill())
		ready(t, c)
		must(t, c.Members[i].Restart(t.Context()))
		ready(t, c)
		var last [3]uint64
		ctx, cancel := context.WithTimeout(t.Context(), enough/2)
		err = until(ctx, 5*time.Second, func(ctx context.Context) error {
			for i := range last {
				n, err := ask.last(ctx, i)
				if err != nil {
					return err
				}
				last[i] = n
			}
			if last[0] != last[1] || last[0] != last[2] {
				return errors.New("they differ")
			}
			return nil
		})
		cancel()
		if err != nil {
			t.Fatalf("member %d was killed; the last sequences of the replicas are %v: %v", i, last, err)
		}
	}
}

// last returns the last sequence that a member has in the bucket's stream.
func (a natsAsker) last(ctx context.Context, member int) (uint64, error) {
	var about struct {
		Accounts []struct {
			Streams []struct {
				Name  string `json:"name"`
				State struct {
					Last uint64 `json:"last_seq"`
				} `json:"state"`
			} `json:"stream_detail"`
		} `json:"account_details"`
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+loopback(a.monitor(member))+"/jsz?streams=true", nil)
	if err != nil {
		return 0, err
	}
	answer, err := plainClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&about); err != nil {
		return 0, err
	}
	for _, account := range about.Accounts {
		for _, s := range account.Streams {
			if s.Name == "KV_"+natsBucket {
				return s.State.Last, nil
			}
		}
	}
	return 0, fmt.Errorf("member %d has no bucket", member)
}

// monitor returns the port of a member's monitoring.
func (a natsAsker) monitor(member int) int {
	for name, port := range a.monitors {
		if name[len(name)-1] == byte('0'+member) {
			return int(port.Load())
		}
	}
	return 0
}
