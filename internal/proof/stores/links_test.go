package stores

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/api/option"
)

// A link is an open connection to a store, for one key.
type link interface {
	put(ctx context.Context, value string) error
	get(ctx context.Context) (string, error) // empty if never put
}

// open connects to the URL that the store gives.
func open(t *testing.T, s *Store) link {
	t.Helper()
	l, done, err := openers[s.Kind](t.Context(), s)
	must(t, err)
	t.Cleanup(done)
	return l
}

var openers = map[string]func(ctx context.Context, s *Store) (l link, done func(), err error){
	Etcd:      openEtcd,
	Postgres:  openPostgres,
	ZooKeeper: openZooKeeper,
	DynamoDB:  openDynamoDB,
	GCS:       openGCS,
	AzureBlob: openAzureBlob,
	Consul:    openConsul,
	MySQL:     openMySQL,
	NATS:      openNATSLink,
	Redis:     openRedis,
	S3:        openS3,
}

type etcdLink struct{ *clientv3.Client }

func openEtcd(ctx context.Context, s *Store) (link, func(), error) {
	client, err := etcdClient(ctx, strings.TrimPrefix(s.URL, "etcd://"), s.Admin)
	return etcdLink{client}, func() { client.Close() }, err
}

func (l etcdLink) put(ctx context.Context, value string) error {
	_, err := l.Put(ctx, "key", value)
	return err
}

func (l etcdLink) get(ctx context.Context) (string, error) {
	r, err := l.Get(ctx, "key")
	if err != nil || len(r.Kvs) == 0 {
		return "", err
	}
	return string(r.Kvs[0].Value), nil
}

type natsLink struct{ NATSRecords }

func openNATSLink(ctx context.Context, s *Store) (link, func(), error) {
	nc, err := NATSConnect(ctx, s.Address)
	if err != nil {
		return nil, nil, err
	}
	return natsLink{NewNATSRecords(nc, natsBucket, "link")}, nc.Close, nil
}

func (l natsLink) put(ctx context.Context, value string) error {
	return l.Put(ctx, "key", []byte(value))
}

func (l natsLink) get(ctx context.Context) (string, error) {
	content, err := l.Get(ctx, "key")
	return string(content), err
}

type consulLink struct{ address string }

func openConsul(_ context.Context, s *Store) (link, func(), error) {
	return consulLink{s.Address}, func() {}, nil
}

func (l consulLink) put(ctx context.Context, value string) error {
	_, err := consulCall(ctx, l.address, "", http.MethodPut, "/v1/kv/key", []byte(value), nil)
	return err
}

func (l consulLink) get(ctx context.Context) (value string, err error) {
	var content []byte
	status, err := consulCall(ctx, l.address, "", http.MethodGet, "/v1/kv/key?raw&consistent", nil, &content)
	if status == http.StatusNotFound {
		err = nil
	}
	return string(content), err
}

type postgresLink struct{ *pgx.Conn }

func openPostgres(ctx context.Context, s *Store) (link, func(), error) {
	conn, err := pgx.Connect(ctx, s.URL)
	return postgresLink{conn}, func() { conn.Close(context.Background()) }, err
}

func (l postgresLink) put(ctx context.Context, value string) error {
	_, err := l.Exec(ctx, "CREATE TABLE t AS SELECT $1::text AS value", value)
	return err
}

func (l postgresLink) get(ctx context.Context) (string, error) {
	var value string
	err := l.QueryRow(ctx, "SELECT value FROM t").Scan(&value)
	if e := (*pgconn.PgError)(nil); errors.As(err, &e) && e.Code == "42P01" {
		return "", nil // no such table
	}
	return value, err
}

type mySQLLink struct{ *sql.DB }

func openMySQL(_ context.Context, s *Store) (link, func(), error) {
	db, err := sql.Open("mysql", s.MySQLName())
	return mySQLLink{db}, func() { db.Close() }, err
}

func (l mySQLLink) put(ctx context.Context, value string) error {
	_, err := l.ExecContext(ctx, "create table t as select '"+value+"' as value")
	return err
}

func (l mySQLLink) get(ctx context.Context) (value string, err error) {
	err = l.QueryRowContext(ctx, "select value from t").Scan(&value)
	if e := (*mysql.MySQLError)(nil); errors.As(err, &e) && e.Number == 1146 {
		return "", nil // no such table
	}
	return value, err
}

type redisLink struct{ *goredis.Client }

func openRedis(_ context.Context, s *Store) (link, func(), error) {
	c := s.RedisClient()
	return redisLink{c}, func() { c.Close() }, nil
}

func (l redisLink) put(ctx context.Context, value string) error {
	return l.Set(ctx, "key", value, 0).Err()
}

func (l redisLink) get(ctx context.Context) (string, error) {
	value, err := l.Get(ctx, "key").Result()
	if errors.Is(err, goredis.Nil) {
		err = nil
	}
	return value, err
}

// A zooKeeperLink's library connects by itself, and has no contexts.
type zooKeeperLink struct{ *zk.Conn }

type noLog struct{}

func (noLog) Printf(string, ...any) {}

func openZooKeeper(ctx context.Context, s *Store) (link, func(), error) {
	conn, events, err := zk.Connect([]string{strings.TrimPrefix(s.URL, "zookeeper://")}, 30*time.Second, zk.WithLogger(noLog{}))
	if err != nil {
		return nil, nil, err
	}
	for e := range events {
		if e.State == zk.StateHasSession {
			break
		}
	}
	return zooKeeperLink{conn}, conn.Close, nil
}

func (l zooKeeperLink) put(_ context.Context, value string) error {
	_, err := l.Create("/key", []byte(value), 0, zk.WorldACL(zk.PermAll))
	return err
}

func (l zooKeeperLink) get(context.Context) (string, error) {
	value, _, err := l.Get("/key")
	if errors.Is(err, zk.ErrNoNode) {
		return "", nil
	}
	return string(value), err
}

type dynamoLink struct {
	*dynamodb.Client
	table string
}

func openDynamoDB(ctx context.Context, s *Store) (link, func(), error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	client, done := dynamoClient(strings.TrimPrefix(u.Query().Get("endpoint"), "http://"))
	return dynamoLink{client, u.Host}, done, nil
}

func (l dynamoLink) put(ctx context.Context, value string) error {
	_, err := l.PutItem(ctx, &dynamodb.PutItemInput{TableName: &l.table, Item: map[string]types.AttributeValue{
		"election": &types.AttributeValueMemberS{Value: "key"},
		"record":   &types.AttributeValueMemberS{Value: value},
	}})
	return err
}

func (l dynamoLink) get(ctx context.Context) (string, error) {
	r, err := l.GetItem(ctx, &dynamodb.GetItemInput{TableName: &l.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"election": &types.AttributeValueMemberS{Value: "key"}}})
	if err != nil || r.Item == nil {
		return "", err
	}
	return r.Item["record"].(*types.AttributeValueMemberS).Value, nil
}

type gcsLink struct{ *storage.ObjectHandle }

func openGCS(ctx context.Context, s *Store) (link, func(), error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, err
	}
	client, err := storage.NewClient(ctx, option.WithEndpoint(u.Query().Get("endpoint")), option.WithoutAuthentication(), storage.WithJSONReads())
	if err != nil {
		return nil, nil, err
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever))
	return gcsLink{client.Bucket(u.Host).Object("key")}, func() { client.Close() }, nil
}

func (l gcsLink) put(ctx context.Context, value string) error {
	w := l.NewWriter(ctx)
	w.ChunkSize = 0 // one request
	_, err := io.WriteString(w, value)
	return errors.Join(err, w.Close())
}

func (l gcsLink) get(ctx context.Context) (string, error) {
	r, err := l.NewReader(ctx)
	if errors.Is(err, storage.ErrObjectNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Close()
	value, err := io.ReadAll(r)
	return string(value), err
}

type azureLink struct{ *blockblob.Client }

func openAzureBlob(_ context.Context, s *Store) (link, func(), error) {
	c, done, err := AzuriteContainer(s.Address, azuriteContainer)
	return azureLink{c.NewBlockBlobClient("key")}, done, err
}

func (l azureLink) put(ctx context.Context, value string) error {
	_, err := l.Upload(ctx, streaming.NopCloser(strings.NewReader(value)), nil)
	return err
}

func (l azureLink) get(ctx context.Context) (string, error) {
	r, err := l.DownloadStream(ctx, nil)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	value, err := io.ReadAll(r.Body)
	return string(value), err
}

type s3Link struct{ *s3.Client }

func openS3(_ context.Context, s *Store) (link, func(), error) {
	c, done := S3Client("http://"+s.Address, s.Admin)
	return s3Link{c}, done, nil
}

func (l s3Link) put(ctx context.Context, value string) error {
	_, err := l.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(s3Bucket), Key: aws.String("key"), Body: strings.NewReader(value)})
	return err
}

func (l s3Link) get(ctx context.Context) (string, error) {
	r, err := l.GetObject(ctx, &s3.GetObjectInput{Bucket: aws.String(s3Bucket), Key: aws.String("key")})
	if missing := (*s3types.NoSuchKey)(nil); errors.As(err, &missing) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	value, err := io.ReadAll(r.Body)
	return string(value), err
}
