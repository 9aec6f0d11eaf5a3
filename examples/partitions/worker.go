package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/partition"
)

// work counts the items of the partitions that this process owns, until ctx ends.
func work(ctx context.Context, store, ledger string) error {
	w := &worker{ledger: ledger, probe: newProbe()}
	g, err := partition.Join(ctx, store, group, &partition.Options{Partitions: partitions, Elector: w.probe.options()})
	if err != nil {
		return err
	}
	return errors.Join(g.Run(ctx, w.count), g.Close())
}

// A worker counts items in a ledger.
type worker struct {
	ledger string // its URL
	probe  *probe // reports to the demo; does nothing otherwise
}

// connections are shared by all leases of a process.
var connections = &http.Transport{MaxIdleConnsPerHost: 2 * partitions}

// count is what only the owner of a partition does. It returns nil when it is told
// to stop.
func (w *worker) count(ctx context.Context, lease *partition.Lease) error {
	w.probe.owns(lease)
	defer w.probe.givesUp(lease)
	// The Transport checks the lease before each request, and sends the token. A
	// process that is paused after the check acts late: the demo makes that happen,
	// in the probe. The ledger refuses the late request.
	client := &http.Client{Transport: &fencehttp.Transport{Lease: lease, Base: w.probe.transport(lease)}}
	items := fmt.Sprintf("%s/partitions/%d/items", w.ledger, lease.Partition())
	for {
		// Where did the last owner stop? This shows our token too, and from then
		// on no older owner can count.
		next, err := request(ctx, client, http.MethodGet, items, "")
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		// A request that was sent is not taken back: an owner that is told to stop
		// still learns what became of it.
		_, err = request(context.WithoutCancel(ctx), client, http.MethodPost, items, next)
		w.probe.answered(lease, next, err)
		if err != nil {
			return err // elector.ErrStale, or a ledger that is gone
		}
	}
}

// request returns the text of the answer. A refusal is ErrStale.
func request(ctx context.Context, client *http.Client, method, url, text string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(text))
	if err != nil {
		return "", err
	}
	answer, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if highest, refused := fencehttp.Refused(answer); refused {
		return "", fmt.Errorf("%s: %w: the highest token is %d", url, elector.ErrStale, highest)
	}
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, answer.Status, body)
	}
	return string(body), err
}
