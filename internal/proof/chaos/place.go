package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
	_ "github.com/elector-go/elector/backends/azureblob"
	_ "github.com/elector-go/elector/backends/consul"
	_ "github.com/elector-go/elector/backends/dynamodb"
	_ "github.com/elector-go/elector/backends/etcd"
	_ "github.com/elector-go/elector/backends/file"
	_ "github.com/elector-go/elector/backends/gcs"
	_ "github.com/elector-go/elector/backends/kubernetes"
	_ "github.com/elector-go/elector/backends/mysql"
	_ "github.com/elector-go/elector/backends/nats"
	_ "github.com/elector-go/elector/backends/postgres"
	_ "github.com/elector-go/elector/backends/redis"
	_ "github.com/elector-go/elector/backends/s3"
	_ "github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/internal/proof/chaos/data"
	"github.com/elector-go/elector/internal/proof/chaos/history"
	"github.com/elector-go/elector/internal/proof/chaos/network"
	"github.com/elector-go/elector/internal/proof/chaos/raw"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A Place is where elections are held: a store, two or three servers of one, or a
// folder, with all that a campaign needs to break it.
type Place struct {
	Name  string // for people: "etcd", "etcd 3 nodes", "file"
	How   string // where it comes from
	Rules history.Rules

	url     func(through func(address string) string) string // of the store, each address replaced
	dataURL func(through func(address string) string) string // of the data in it; url if nil
	records raw.Records                                      // the records behind the elector's back; nil if not to be had
	store   *stores.Store                                    // nil for a cluster, a pair and a folder
	cluster *stores.Cluster                                  // or nil
	pair    *pair                                            // or nil
	data    data.Data                                        // next to the records, guarded; nil if there is none
	gate    *throttle                                        // between the proxies and the store; or nil

	credentials *credentials // of the candidates; or nil
	close       []func() error
}

// File is the name of the place that is a folder of this machine.
const File = "file"

// shortest is the TTL where the store allows it.
const shortest = 2 * time.Second

// Nodes is the end of the name of a cluster.
const Nodes = " 3 nodes"

// clusters are the kinds of which there are clusters of three.
var clusters = []string{stores.Etcd, stores.ZooKeeper, stores.Consul, stores.NATS}

// Names returns the places of a campaign that names none: see stores.Kinds.
func Names() []string {
	names := of(stores.Kinds)
	if slices.Contains(stores.Kinds, stores.Etcd) {
		names = append(names, File)
	}
	return names
}

// Known returns all places that Open knows.
func Known() []string { return append(of(stores.All()), File) }

func of(kinds []string) []string {
	names := slices.Clone(kinds)
	for _, kind := range clusters {
		if slices.Contains(kinds, kind) {
			names = append(names, kind+Nodes)
		}
	}
	if slices.Contains(kinds, stores.Redis) {
		names = append(names, Pair)
	}
	return names
}

// Guarded reports whether the place's candidates also write to data in the store,
// through its guard.
func Guarded(name string) bool {
	kind := strings.TrimSuffix(name, Nodes)
	return kind == stores.Etcd || kind == stores.Postgres || kind == stores.Consul || kind == stores.MySQL || kind == stores.NATS || kind == stores.Redis
}

// Open starts a place, by its name. Close ends it.
func Open(ctx context.Context, name string) (*Place, error) {
	p := &Place{Name: name}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), p.Close())
	}
	return p, nil
}

func (p *Place) open(ctx context.Context) error {
	kind, isCluster := strings.CutSuffix(p.Name, Nodes)
	var err error
	switch {
	case isCluster:
		err = p.openCluster(ctx, kind)
	case kind == Pair:
		err = p.openPair(ctx)
	case kind == File:
		err = p.openFolder()
	default:
		err = p.openStore(ctx, kind)
	}
	if err != nil {
		return err
	}
	direct := p.URL(itself)
	if p.dataURL == nil {
		p.dataURL = p.url
	}
	if p.data, err = data.Open(p.dataURL(itself)); err != nil {
		return err
	}
	if p.data != nil {
		p.close = append(p.close, p.data.Close)
	}
	b, err := backends.Open(ctx, direct)
	if err != nil {
		return err
	}
	d := b.Describe()
	p.Rules = history.RulesOf(max(shortest, d.MinTTL), d.MinWriteInterval).On(p.hosts())
	p.Rules.Takeover += p.Rules.Renew // the candidate with the highest priority has a head start, and may be gone
	return b.Close()
}

func (p *Place) openStore(ctx context.Context, kind string) (err error) {
	switch kind {
	case stores.Etcd:
		p.store, err = stores.EtcdWithAuth(ctx, etcdPrefix)
	case stores.NATS:
		p.store, err = stores.NATSWithUsers(ctx, natsRights)
	default:
		p.store, err = stores.StartLocal(ctx, kind)
	}
	if err != nil {
		return err
	}
	p.close = append(p.close, p.store.Stop)
	p.How = p.store.How
	p.url = func(through func(string) string) string { return p.store.Through(through(p.store.Address)) }
	administrator := *p.store
	if kind == stores.Etcd || kind == stores.NATS {
		administrator.URL = p.store.Admin.In(p.store.URL)
	}
	p.dataURL = func(through func(string) string) string { return administrator.Through(through(p.store.Address)) }
	if err := p.limit(ctx); err != nil {
		return err
	}
	switch kind {
	case stores.DynamoDB, stores.GCS, stores.AzureBlob, stores.S3:
		stores.AnyCredentials()
		if p.gate, err = newThrottle(p.store.Address, kind); err != nil {
			return err
		}
		p.close = append(p.close, p.gate.close)
	}
	records, closeRecords, err := raw.Open(ctx, &administrator)
	if err != nil {
		return err
	}
	p.records = records
	p.close = append(p.close, closeRecords)
	return nil
}

func (p *Place) openCluster(ctx context.Context, kind string) (err error) {
	if p.cluster, err = stores.StartCluster(ctx, kind, 3); err != nil {
		return err
	}
	p.close = append(p.close, p.cluster.Stop)
	if err := p.cluster.Ready(ctx); err != nil { // NATS has the bucket then
		return err
	}
	p.How = "3 × " + p.cluster.Members[0].How
	p.url = func(through func(string) string) string {
		var hosts []string
		for _, m := range p.cluster.Members {
			hosts = append(hosts, through(m.Address))
		}
		return kind + "://" + strings.Join(hosts, ",") + p.cluster.Path
	}
	return nil
}

func (p *Place) openFolder() error {
	dir, err := os.MkdirTemp("", "elector-chaos-")
	if err != nil {
		return err
	}
	p.close = append(p.close, func() error { return os.RemoveAll(dir) })
	p.How = "a folder of this machine"
	p.url = func(func(string) string) string { return (&url.URL{Scheme: "file", Path: dir}).String() }
	p.records = folder{dir: dir}
	return nil
}

// hosts is how many addresses the URL has.
func (p *Place) hosts() (n int) {
	p.URL(func(address string) string { n++; return address })
	return max(n, 1)
}

// id is the name as a part of an election's.
func (p *Place) id() string { return strings.ReplaceAll(p.Name, " ", "-") }

func itself(address string) string { return address }

// URL returns the place's URL with each address in it replaced.
func (p *Place) URL(through func(address string) string) string { return p.url(through) }

// proxies puts a proxy of its own in front of each of the place's addresses,
// and returns the URLs that lead through them, of the store and of the data in it.
func (p *Place) proxies() (link []*network.Proxy, url, data string, err error) {
	through := map[string]string{}
	url = p.URL(func(address string) string {
		original := address
		if p.gate != nil {
			address = p.gate.address
		}
		proxy, failed := network.New(address)
		if failed != nil {
			err = errors.Join(err, failed)
			return address
		}
		link = append(link, proxy)
		through[original] = proxy.Address()
		return proxy.Address()
	})
	return link, url, p.dataURL(func(address string) string { return through[address] }), err
}

// Close ends everything that Open has started.
func (p *Place) Close() error {
	var err error
	for i := len(p.close) - 1; i >= 0; i-- {
		err = errors.Join(err, p.close[i]())
	}
	p.close = nil
	return err
}
