package raw

import (
	"context"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/elector-go/elector/backends/etcd"
)

// An etcdRecords has a key for each record.
type etcdRecords struct {
	JSON
	client *clientv3.Client
	prefix string
}

func openEtcd(_ context.Context, u *url.URL) (Records, func() error, error) {
	password, _ := u.User.Password()
	client, err := clientv3.New(clientv3.Config{
		Endpoints:   strings.Split(u.Host, ","),
		DialTimeout: 5 * time.Second,
		Username:    u.User.Username(),
		Password:    password,
		Logger:      zap.NewNop(),
	})
	if err != nil {
		return nil, nil, err
	}
	r := etcdRecords{client: client, prefix: etcd.DefaultPrefix}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		r.prefix = path + "/"
	}
	return r, client.Close, nil
}

func (r etcdRecords) Get(ctx context.Context, election string) ([]byte, error) {
	answer, err := r.client.Get(ctx, r.prefix+election)
	if err != nil || len(answer.Kvs) == 0 {
		return nil, err
	}
	return answer.Kvs[0].Value, nil
}

func (r etcdRecords) Put(ctx context.Context, election string, content []byte) error {
	_, err := r.client.Put(ctx, r.prefix+election, string(content))
	return err
}

func (r etcdRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	key := r.prefix + election
	answer, err := r.client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(key), "=", string(old))).
		Then(clientv3.OpPut(key, string(content))).
		Commit()
	return err == nil && answer.Succeeded, err
}

func (r etcdRecords) Delete(ctx context.Context, election string) error {
	_, err := r.client.Delete(ctx, r.prefix+election)
	return err
}
