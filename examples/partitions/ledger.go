package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/partition"
)

// A ledger is the resource: for each partition the items that came, and those that
// were counted. It counts what it is told to count: only the fences in front of it
// refuse an old owner.
type ledger struct {
	mutex sync.Mutex
	logs  [partitions]itemLog
	added int
}

// An itemLog has the items of one partition.
type itemLog struct {
	items   []string // in their order; only the ledger adds to them
	counted []entry  // its length is the checkpoint of the partition
	more    chan struct{}
}

// An entry is one counting of an item. Text has its number and its key.
type entry struct {
	text  string
	token elector.Token
}

func newLedger() *ledger {
	l := &ledger{}
	for i := range l.logs {
		l.logs[i].more = make(chan struct{})
	}
	return l
}

// add adds the next item to the partition of its key.
func (l *ledger) add() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	key := fmt.Sprintf("order-%d", l.added)
	l.added++
	log := &l.logs[partition.Of(key, partitions)]
	log.items = append(log.items, key)
	close(log.more)
	log.more = make(chan struct{})
}

// feed adds items until ctx ends.
func (l *ledger) feed(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			l.add()
		case <-ctx.Done():
			return
		}
	}
}

// next returns the number and the key of the item at the checkpoint. It waits until
// there is one.
func (l *ledger) next(ctx context.Context, partition int) (string, error) {
	for {
		l.mutex.Lock()
		log := l.logs[partition]
		l.mutex.Unlock()
		if n := len(log.counted); n < len(log.items) {
			return itemText(n, log.items[n]), nil
		}
		select {
		case <-log.more:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

func itemText(number int, key string) string { return fmt.Sprintf("%d %s", number, key) }

// count counts an item, which moves the checkpoint.
func (l *ledger) count(partition int, e entry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	log := &l.logs[partition]
	log.counted = append(log.counted, e)
}

// counts returns how many items were counted in a partition, and under which token
// the last one.
func (l *ledger) counts(partition int) (n int, last elector.Token) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	counted := l.logs[partition].counted
	if len(counted) == 0 {
		return 0, 0
	}
	return len(counted), counted[len(counted)-1].token
}

// content returns all items and all countings, by partition.
func (l *ledger) content() (items [][]string, counted [][]entry) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, log := range l.logs {
		items = append(items, slices.Clone(log.items))
		counted = append(counted, slices.Clone(log.counted))
	}
	return items, counted
}

// handler has a fence in front of each partition: tokens of different partitions
// cannot be compared.
func (l *ledger) handler() http.Handler {
	mux := http.NewServeMux()
	for p := range partitions {
		mux.Handle(fmt.Sprintf("/partitions/%d/items", p), &fencehttp.Handler{
			Next:     l.items(p),
			Election: partition.Election(group, p),
		})
	}
	return mux
}

// items serves the items of a partition, behind its fence.
func (l *ledger) items(partition int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := "", error(nil)
		if r.Method == http.MethodGet {
			text, err = l.next(r.Context(), partition)
		} else {
			text, err = l.counting(partition, r)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, text)
	})
}

func (l *ledger) counting(partition int, r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	token, err := elector.ParseToken(r.Header.Get(elector.TokenHeader))
	if err != nil {
		return "", err
	}
	l.count(partition, entry{string(body), token})
	return "", nil
}

// serve serves the ledger on this machine, until stop is called.
func (l *ledger) serve() (url string, stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("the ledger needs a port on 127.0.0.1: %w", err)
	}
	server := &http.Server{Handler: l.handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return err
	}, nil
}
