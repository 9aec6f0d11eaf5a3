//go:build nats

package storms

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/nats"
	"github.com/elector-go/elector/internal/proof/stores"
)

func TestNATS(t *testing.T) {
	s := start(t, stores.NATS)
	natsStorms(t, s.URL, s.Address, true)
}

// The guard on a bucket with three replicas, where a write that is under way has others
// refused.
func TestNATSReplicated(t *testing.T) {
	c, err := stores.StartCluster(t.Context(), stores.NATS, 3)
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, c.Ready(ctx))
	natsStorms(t, c.URL(), c.Members[0].Address, false)
}

const natsStream = "KV_elections"

// natsStorms runs the storms, those of broken guards too if they are wanted.
func natsStorms(t *testing.T, url, address string, broken bool) {
	nc, err := stores.NATSConnect(t.Context(), address)
	must(t, err)
	t.Cleanup(nc.Close)
	handle := func() backends.Backend {
		b, err := backends.Open(t.Context(), url)
		must(t, err)
		t.Cleanup(func() { must(t, b.Close()) })
		return b
	}
	handles := []backends.Backend{handle(), handle(), handle()}
	storm := func(election string, write func(context.Context, *Attempt) error) Storm {
		o := &natsOrder{nc: nc, election: election}
		return Storm{Handles: handles, Election: election, Every: 25 * time.Millisecond, Pause: 40 * time.Millisecond, Seed: 1,
			Write: write, Acquired: o.acquired, Order: o.marks}
	}
	key := func(a *Attempt) string { return fmt.Sprintf("data.%s.%d", a.Election, a.Number) }
	value := func(a *Attempt) []byte { return []byte(strconv.FormatUint(a.Token, 10)) }
	// read returns the record's sequence, or ErrStale if another acquisition made it.
	read := func(ctx context.Context, a *Attempt) (uint64, error) {
		m, err := stores.NATSLast(ctx, nc, natsStream, "$KV.elections.elector."+a.Election+".*.*")
		if err != nil {
			return 0, err
		}
		if r, err := backends.Decode(a.Election, m.Data); err != nil || r.Token != a.Token || r.Vacant() {
			return 0, errors.Join(backends.ErrStale, err)
		}
		return m.Seq, nil
	}
	t.Run("guarded", func(t *testing.T) {
		pass(t, storm("guarded-"+run, func(ctx context.Context, a *Attempt) error {
			a.Pause()
			a.Send()
			_, err := nats.Put(ctx, a, key(a), value(a))
			return err
		}))
	})
	t.Run("a lease", func(t *testing.T) { natsLease(t, nc, handles[0]) })
	if !broken {
		return
	}
	t.Run("read, then put", func(t *testing.T) {
		caught(t, storm("read-put-"+run, func(ctx context.Context, a *Attempt) error {
			if _, err := read(ctx, a); err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return natsPublish(ctx, nc, key(a), value(a), nil)
		}), late)
	})
	t.Run("the record's sequence checked", func(t *testing.T) {
		caught(t, storm("sequence-"+run, func(ctx context.Context, a *Attempt) error {
			seq, err := read(ctx, a)
			if err != nil {
				return err
			}
			a.Pause()
			a.Send()
			return natsPublish(ctx, nc, key(a), value(a), natsgo.Header{
				"Nats-Expected-Last-Subject-Sequence":         {strconv.FormatUint(seq, 10)},
				"Nats-Expected-Last-Subject-Sequence-Subject": {"$KV.elections.elector." + a.Election + ".*.*"},
			})
		}), falselyRefused)
	})
}

// natsPublish writes a key, and returns ErrStale if the stream refused it.
func natsPublish(ctx context.Context, nc *natsgo.Conn, key string, value []byte, header natsgo.Header) error {
	m, err := nc.RequestMsgWithContext(ctx, &natsgo.Msg{Subject: "$KV.elections." + key, Header: header, Data: value})
	if err != nil {
		return err
	}
	var answer struct {
		Error *struct {
			ErrCode int `json:"err_code"`
		}
	}
	if err := json.Unmarshal(m.Data, &answer); err != nil || answer.Error == nil {
		return err
	}
	if answer.Error.ErrCode == 10071 {
		return backends.ErrStale
	}
	return fmt.Errorf("%s", m.Data)
}

// A natsOrder is in the sequences of the stream.
type natsOrder struct {
	nc       *natsgo.Conn
	election string

	mutex        sync.Mutex
	acquisitions []Mark
}

func (o *natsOrder) acquired(_ context.Context, h backends.Lease) error {
	a, err := h.Acquisition()
	if err != nil {
		return err
	}
	parts := strings.Split(string(a.Record.Version), ".")
	seq, err := strconv.ParseInt(parts[len(parts)-1], 10, 64) // of the first write of the term
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.acquisitions = append(o.acquisitions, Mark{a.Record.Token, seq})
	return err
}

func (o *natsOrder) marks(ctx context.Context) (acquisitions, writes []Mark, err error) {
	for from := uint64(1); ; {
		m, err := stores.NATSNext(ctx, o.nc, natsStream, "$KV.elections.data."+o.election+".*", from)
		if err != nil {
			return nil, nil, err
		}
		if m.Seq == 0 {
			break
		}
		token, err := strconv.ParseUint(string(m.Data), 10, 64)
		if err != nil {
			return nil, nil, err
		}
		writes, from = append(writes, Mark{token, int64(m.Seq)}), m.Seq+1
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.acquisitions, writes, nil
}

// One guard is good for as long as a lease lasts, whatever the lease writes
// meanwhile, and no longer.
func natsLease(t *testing.T, nc *natsgo.Conn, b backends.Backend) {
	name := "lease-" + run
	e, lease := lead(t, b, name)
	guard, err := nats.Guard(lease)
	must(t, err)
	passes := func(when string, want error) {
		t.Helper()
		wants(t, "a guard "+when, natsPublish(t.Context(), nc, "data."+name, nil, guard), want)
	}
	passes("after the acquisition", nil)
	must(t, lease.Proclaim(t.Context(), "a value"))
	passes("after a renewal with a value", nil)
	if revision, err := nats.Put(t.Context(), lease, "data."+name, []byte("1")); err != nil || revision == 0 {
		t.Errorf("Put answers %d, %v", revision, err)
	}
	must(t, lease.Release(t.Context()))
	passes("after the release", backends.ErrStale)
	_, err = nats.Put(t.Context(), lease, "data."+name, nil)
	wants(t, "Put after the release", err, elector.ErrResigned)
	lease, err = e.TryCampaign(t.Context())
	must(t, err)
	passes("after another acquisition", backends.ErrStale)
	guard, err = nats.Guard(lease)
	must(t, err)
	passes("of the other acquisition", nil)
}
