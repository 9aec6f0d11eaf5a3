package groups

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// heartbeats is how many heartbeats a consumer sends in a session: as many as the
// documentation of both libraries asks for at least.
const heartbeats = 3

// recordEvery is the time between two records of a partition.
const recordEvery = 4 * unit

// A broker is kfake's, with a topic for each group, to which it appends records.
type broker struct {
	cluster  *kfake.Cluster
	client   *kgo.Client
	stopping sync.WaitGroup
}

// startBroker starts a broker with a topic for each of the groups.
func startBroker(partitions int, topics []string) (*broker, error) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(int32(partitions), topics...))
	if err != nil {
		return nil, err
	}
	b := &broker{cluster: cluster}
	if b.client, err = kgo.NewClient(kgo.SeedBrokers(b.address()), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0)); err != nil {
		cluster.Close()
		return nil, err
	}
	return b, nil
}

func (b *broker) address() string { return b.cluster.ListenAddrs()[0] }

// produce appends a record to each partition of a topic, again and again, until stop is
// called.
func (b *broker) produce(ctx context.Context, topic string, partitions int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	b.stopping.Go(func() {
		tick := time.NewTicker(recordEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for n := range partitions {
				b.client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(n), Value: []byte("x")}, nil)
			}
		}
	})
	return cancel
}

func (b *broker) close() {
	b.client.Close()
	b.stopping.Wait()
	b.cluster.Close()
}

// joinFranz is a member of a consumer group of franz-go, which has a goroutine for each
// partition between OnPartitionsAssigned and OnPartitionsRevoked or OnPartitionsLost. The
// callbacks that take a partition away wait for the record under way.
func joinFranz(ctx context.Context, t task, j *journal) error {
	workers := map[int32]*franzWorker{} // no callback runs while records are handed out: BlockRebalanceOnPoll
	assigned := func(_ context.Context, cl *kgo.Client, topics map[string][]int32) {
		for _, partitions := range topics {
			for _, n := range partitions {
				w := &franzWorker{records: make(chan []*kgo.Record, 1000), quit: make(chan struct{}), done: make(chan struct{})}
				workers[n] = w
				j.holds(int(n), began)
				go w.work(cl, int(n), j)
			}
		}
	}
	gone := func(topics map[string][]int32) {
		for _, partitions := range topics {
			for _, n := range partitions {
				close(workers[n].quit)
			}
			for _, n := range partitions {
				<-workers[n].done
				delete(workers, n)
				j.holds(int(n), ended)
			}
		}
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(t.URL), throughOnly(t.URL),
		kgo.ConsumerGroup(t.Group), kgo.ConsumeTopics(t.Group),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(t.TTL), kgo.HeartbeatInterval(t.TTL/heartbeats),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()),
		kgo.AutoCommitMarks(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(assigned),
		kgo.OnPartitionsRevoked(func(ctx context.Context, cl *kgo.Client, topics map[string][]int32) {
			gone(topics)
			cl.CommitMarkedOffsets(ctx)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, topics map[string][]int32) { gone(topics) }),
	)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		fetches := cl.PollRecords(ctx, 1000)
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if w := workers[p.Partition]; w != nil && len(p.Records) > 0 {
				w.records <- p.Records
			}
		})
		cl.AllowRebalance()
	}
	cl.CloseAllowingRebalance() // leaves the group
	return nil
}

type franzWorker struct {
	records    chan []*kgo.Record // long: one partition with much to do holds up no other
	quit, done chan struct{}
}

func (w *franzWorker) work(cl *kgo.Client, n int, j *journal) {
	defer close(w.done)
	defer j.rest(n)
	for {
		select {
		case <-w.quit:
			return
		case records := <-w.records:
			for _, r := range records {
				select {
				case <-w.quit:
					return
				default:
				}
				j.unit(n)
				cl.MarkCommitRecords(r)
			}
		}
	}
}

// throughOnly makes a client reach the only broker at this address, whatever address the
// broker gives: through a proxy.
func throughOnly(address string) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	})
}

// joinSarama is a member of a consumer group of sarama, whose ConsumeClaim does a unit of
// work for each message until the session ends.
func joinSarama(ctx context.Context, t task, j *journal) error {
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	c.Consumer.Group.Session.Timeout, c.Consumer.Group.Heartbeat.Interval = t.TTL, t.TTL/heartbeats
	c.Consumer.Offsets.Initial = sarama.OffsetNewest
	c.Net.Proxy.Enable, c.Net.Proxy.Dialer = true, dialer(t.URL)
	g, err := sarama.NewConsumerGroup([]string{t.URL}, t.Group, c)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{t.Group}, consumer{j}); err != nil {
			select { // it is to be called again
			case <-time.After(t.TTL / heartbeats / 4):
			case <-ctx.Done():
			}
		}
	}
	return g.Close() // leaves the group
}

// A dialer is throughOnly for sarama.
type dialer string

func (d dialer) Dial(network, _ string) (net.Conn, error) { return net.Dial(network, string(d)) }

type consumer struct{ *journal }

func (consumer) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (consumer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (c consumer) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	n := int(claim.Partition())
	c.holds(n, began)
	defer c.holds(n, ended)
	defer c.rest(n)
	for {
		select {
		case m, ok := <-claim.Messages():
			if !ok || s.Context().Err() != nil {
				return nil
			}
			c.unit(n)
			s.MarkMessage(m, "")
		case <-s.Context().Done():
			return nil
		}
	}
}
