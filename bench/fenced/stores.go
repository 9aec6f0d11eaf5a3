package fenced

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"
	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // for database/sql
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/azureblob"
	"github.com/elector-go/elector/backends/consul"
	fencedynamodb "github.com/elector-go/elector/backends/dynamodb"
	"github.com/elector-go/elector/backends/etcd"
	"github.com/elector-go/elector/backends/gcs"
	"github.com/elector-go/elector/backends/postgres"
	"github.com/elector-go/elector/backends/s3"
	"github.com/elector-go/elector/backends/zookeeper"
	"github.com/elector-go/elector/fence/fencesql"
	"github.com/elector-go/elector/internal/proof/stores"
)

func etcds(_ context.Context, t *target) ([]pair, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{t.address}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, func() { client.Close() })
	return []pair{{"etcd.Commit", func(ctx context.Context, n int) error {
		_, err := client.Txn(ctx).Then(clientv3.OpPut("fenced", fmt.Sprint(n))).Commit()
		return err
	}, func(ctx context.Context, n int) error {
		_, err := etcd.Commit(ctx, client, t.lease, clientv3.OpPut("fenced", fmt.Sprint(n)))
		return err
	}}}, nil
}

func zookeepers(_ context.Context, t *target) ([]pair, error) {
	conn, _, err := zk.Connect([]string{t.address}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, conn.Close)
	if _, err := conn.Create("/fenced", nil, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return nil, err
	}
	set := func(n int) *zk.SetDataRequest {
		return &zk.SetDataRequest{Path: "/fenced", Data: []byte(fmt.Sprint(n)), Version: -1}
	}
	return []pair{{"zookeeper.Multi", func(_ context.Context, n int) error {
		_, err := conn.Multi(set(n))
		return err
	}, func(_ context.Context, n int) error {
		_, err := zookeeper.Multi(conn, t.lease, set(n))
		return err
	}}}, nil
}

func consuls(ctx context.Context, t *target) ([]pair, error) {
	transport := &http.Transport{}
	t.closers = append(t.closers, transport.CloseIdleConnections)
	plain := func(ctx context.Context, n int) error {
		body := fmt.Sprintf(`[{"KV":{"Verb":"set","Key":"fenced","Value":"%s"}}]`, base64.StdEncoding.EncodeToString([]byte(fmt.Sprint(n))))
		r, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+t.address+"/v1/txn", strings.NewReader(body))
		if err != nil {
			return err
		}
		answer, err := transport.RoundTrip(r)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
			return errors.Join(err, errors.New(answer.Status))
		}
		return nil
	}
	b, err := consul.New(ctx, &http.Client{Transport: transport}, &consul.Options{Address: "http://" + t.address})
	if err != nil {
		return nil, err
	}
	return []pair{{"consul.Commit", plain, func(ctx context.Context, n int) error {
		_, err := consul.Commit(ctx, through{t.lease, b}, consul.Operation{Verb: "set", Key: "fenced", Value: []byte(fmt.Sprint(n))})
		return err
	}}}, nil
}

// A through is a lease that writes by another way than its election.
type through struct {
	backends.Lease
	way backends.Backend
}

// Acquisition implements [backends.Lease].
func (h through) Acquisition() (backends.Acquisition, error) {
	a, err := h.Lease.Acquisition()
	a.Backend = h.way
	return a, err
}

func postgreses(ctx context.Context, t *target) ([]pair, error) {
	pool, err := pgxpool.New(ctx, t.url)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, pool.Close)
	db, err := sql.Open("pgx", t.url)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, func() { db.Close() })
	if _, err := pool.Exec(ctx, "create table if not exists fenced (id int primary key, n int not null)"); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "insert into fenced values (1, 0) on conflict do nothing"); err != nil {
		return nil, err
	}
	const update = "update fenced set n = $1 where id = 1"
	either, err := fenceSQL(ctx, t, db, fencesql.PostgreSQL, update)
	if err != nil {
		return nil, err
	}
	return append(either, []pair{
		{"postgres.Transact", func(ctx context.Context, n int) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, n); return err })
		}, func(ctx context.Context, n int) error {
			return postgres.Transact(ctx, pool, t.lease, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, update, n); return err })
		}},
		{"postgres.TransactDB", plainly(db, update), func(ctx context.Context, n int) error {
			return postgres.TransactDB(ctx, db, t.lease, func(tx *sql.Tx) error { _, err := tx.ExecContext(ctx, update, n); return err })
		}},
		{"a condition in one PostgreSQL statement", func(ctx context.Context, n int) error {
			_, err := pool.Exec(ctx, update, n)
			return err
		}, func(ctx context.Context, n int) error {
			if err := t.lease.Check(); err != nil {
				return err
			}
			tag, err := pool.Exec(ctx, update+" and exists (select from elector where name = $2 and token = $3 and holder <> '' for key share)", n, t.lease.Election(), t.lease.Token())
			if err == nil && tag.RowsAffected() != 1 {
				err = errors.New("it was refused")
			}
			return err
		}},
	}...), nil
}

func dynamodbs(ctx context.Context, t *target) ([]pair, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	c, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.Nop{}), config.WithRegion(u.Query().Get("region")))
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(c, func(o *dynamodb.Options) {
		if endpoint := u.Query().Get("endpoint"); endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})
	term, err := fencedynamodb.Claim(ctx, t.lease)
	if err != nil {
		return nil, err
	}
	item := func(name string, n int) map[string]types.AttributeValue {
		return map[string]types.AttributeValue{"election": &types.AttributeValueMemberS{Value: "fenced/" + name}, "n": &types.AttributeValueMemberN{Value: fmt.Sprint(n)}}
	}
	put := func(name string, n int) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{TableName: &u.Host, Item: item(name, n)}}
	}
	return []pair{
		{"dynamodb.Put", func(ctx context.Context, n int) error {
			_, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &u.Host, Item: item("plain", n)})
			return err
		}, func(ctx context.Context, n int) error {
			_, err := fencedynamodb.Put(ctx, client, t.lease, &dynamodb.PutItemInput{TableName: &u.Host, Item: item("put", n)})
			return err
		}},
		{"dynamodb.Term.Write, after one Claim", func(ctx context.Context, n int) error {
			_, err := client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{put("alone", n)}})
			return err
		}, func(ctx context.Context, n int) error { return term.Write(ctx, client, put("checked", n)) }},
	}, nil
}

func gcses(ctx context.Context, t *target) ([]pair, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	var options []option.ClientOption
	if endpoint := u.Query().Get("endpoint"); endpoint != "" {
		options = []option.ClientOption{option.WithEndpoint(endpoint), option.WithCredentials(&google.Credentials{}), option.WithHTTPClient(&http.Client{Transport: &http.Transport{}})}
	}
	client, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, func() { client.Close() })
	plain, guarded := client.Bucket(u.Host).Object("fenced/plain"), client.Bucket(u.Host).Object("fenced/guarded")
	return []pair{{"gcs.Write", func(ctx context.Context, n int) error {
		w := plain.NewWriter(ctx)
		w.ChunkSize = 1 // as gcs.Write, which needs no buffer of 16 MB
		_, err := fmt.Fprint(w, n)
		return errors.Join(err, w.Close())
	}, func(ctx context.Context, n int) error {
		return gcs.Write(ctx, guarded, t.lease, []byte(fmt.Sprint(n)), nil)
	}}}, nil
}

func s3s(_ context.Context, t *target) ([]pair, error) {
	u, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	client, done := stores.S3Client(u.Query().Get("endpoint"), t.store.Admin)
	t.closers = append(t.closers, done)
	return []pair{{"s3.Write", func(ctx context.Context, n int) error {
		_, err := client.PutObject(ctx, &awss3.PutObjectInput{Bucket: &u.Host, Key: aws.String("fenced/plain"), Body: strings.NewReader(fmt.Sprint(n))})
		return err
	}, func(ctx context.Context, n int) error {
		return s3.Write(ctx, client, u.Host, "fenced/guarded", t.lease, []byte(fmt.Sprint(n)), nil)
	}}}, nil
}

func azureBlobs(ctx context.Context, t *target) ([]pair, error) {
	client, done, err := stores.AzuriteContainer(t.address, "elector")
	if err != nil {
		return nil, err
	}
	t.closers = append(t.closers, done)
	plain, guarded := client.NewBlockBlobClient("fenced/plain"), client.NewBlockBlobClient("fenced/guarded")
	return []pair{{"azureblob.Write", func(ctx context.Context, n int) error {
		_, err := plain.Upload(ctx, streaming.NopCloser(strings.NewReader(fmt.Sprint(n))), nil)
		return err
	}, func(ctx context.Context, n int) error {
		return azureblob.Write(ctx, guarded, t.lease, []byte(fmt.Sprint(n)), nil)
	}}}, nil
}
