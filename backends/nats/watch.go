package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/elector-go/elector/backends"
)

const (
	// heartbeat is how often the server reports that nothing has changed. After
	// silent it is taken for dead.
	heartbeat = 2 * time.Second
	silent    = 5 * time.Second

	// quiet is how long nothing may change before the record is read from the stream's
	// leader: the consumer may be on a server that is cut off from it.
	quiet = 10 * time.Second

	// unwatched is how long a consumer outlives the subscription.
	unwatched = 5 * time.Second
)

// Watch implements [backends.Watcher]. Each Watch has a consumer on the servers; it is
// gone 5 s after Watch has returned.
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error {
		ctx, leave := b.under.enter(ctx, watching)
		defer leave() // ends the subscription
		err := b.watch(ctx, name, changed)
		if errors.Is(context.Cause(ctx), errDisconnected) {
			return errDisconnected
		}
		return err
	})
}

// watching stands for the subject of what is no request.
const watching = ""

func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	inbox := b.nc.NewInbox()
	sub, err := b.subscribe(ctx, inbox)
	if err != nil {
		return err
	}
	var seen uint64 // the sequence of the latest message
	show := func(m message) error {
		r, err := b.record(name, m)
		if err != nil {
			return err
		}
		seen = max(seen, m.Seq)
		changed(r)
		return nil
	}
	var m message
	last := func(ctx context.Context) (err error) {
		m, err = b.last(ctx, name)
		return err
	}
	err = inTime(ctx, last)
	if err == nil {
		err = show(m)
	}
	if err == nil {
		err = b.consume(ctx, name, inbox, seen+1)
	}
	if err != nil {
		return err
	}
	delivered, change := uint64(0), time.Now() // how many messages the consumer has sent, and when the last was
	for {
		got, beat, err := next(ctx, sub, delivered)
		switch {
		case err != nil:
			return err
		case !beat:
			if delivered++; got.Seq > seen {
				change = time.Now()
				if err := show(got); err != nil {
					return err
				}
			}
		case time.Since(change) > quiet:
			if err := inTime(ctx, last); err != nil {
				return err
			}
			if change = time.Now(); m.Seq != seen {
				seen = m.Seq
				if err := show(m); err != nil {
					return err
				}
			}
		}
	}
}

// subscribe makes a subscription that lasts until ctx ends. Both its begin and its end may
// wait for a dead connection to take them.
func (b *Backend) subscribe(ctx context.Context, inbox string) (*natsgo.Subscription, error) {
	return backends.WithContext(ctx, b.base, func() (*natsgo.Subscription, error) {
		sub, err := b.nc.SubscribeSync(inbox)
		if err == nil {
			b.aside.Add(1)
			context.AfterFunc(ctx, func() { defer b.aside.Done(); sub.Unsubscribe() })
		}
		return sub, err
	})
}

// inTime does what the servers must answer before they are taken for silent: the one that
// a watch depends on may be cut off, or dead.
func inTime(ctx context.Context, do func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, silent)
	defer cancel()
	err := do(bounded)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return errSilent
	}
	return err
}

// next waits for a message, or for a heartbeat. It returns an error if messages were lost.
func next(ctx context.Context, sub *natsgo.Subscription, delivered uint64) (m message, beat bool, err error) {
	var got *natsgo.Msg
	if err := inTime(ctx, func(ctx context.Context) (err error) {
		got, err = sub.NextMsgWithContext(ctx)
		return err
	}); err != nil {
		return message{}, false, err
	}
	if status := got.Header.Get("Status"); status != "" {
		sent, err := strconv.ParseUint(got.Header.Get("Nats-Last-Consumer"), 10, 64)
		if status != "100" || err != nil || sent != delivered {
			return message{}, false, errLost
		}
		return message{}, true, nil
	}
	about, err := got.Metadata()
	if err != nil || about.Sequence.Consumer != delivered+1 {
		return message{}, false, errLost
	}
	return message{Subject: got.Subject, Seq: about.Sequence.Stream, Data: got.Data, header: got.Header}, false, nil
}

// consume makes a consumer that sends the election's messages from the sequence on.
func (b *Backend) consume(ctx context.Context, name, inbox string, from uint64) error {
	id, filter := rand.Text(), b.subject(name)+".*.*"
	var answer struct{ Error *apiError }
	request := map[string]any{
		"stream_name": b.stream(),
		"action":      "create",
		"config": map[string]any{
			"name":               id,
			"deliver_subject":    inbox,
			"deliver_policy":     "by_start_sequence",
			"opt_start_seq":      from,
			"ack_policy":         "none",
			"filter_subject":     filter,
			"replay_policy":      "instant",
			"idle_heartbeat":     heartbeat,
			"inactive_threshold": unwatched,
			"num_replicas":       1,
			"mem_storage":        true,
			"max_deliver":        1,
		},
	}
	err := inTime(ctx, func(ctx context.Context) error {
		return b.ask(ctx, "CONSUMER.CREATE."+b.stream()+"."+id+"."+filter, request, &answer)
	})
	if err == nil && answer.Error != nil {
		err = answer.Error
	}
	return err
}
