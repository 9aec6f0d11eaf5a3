package stores

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/elector-go/elector/internal/proof/internal/engine"
)

// An image says how servers of one kind are run as containers. It suits the
// official image and the stand-in that make images builds.
type image struct {
	port       string            // that the server listens on in there
	env        map[string]string // of the server
	files      map[string]string // content by path, for all to read
	stopSignal string            // makes it end at once; the image's own if empty
	saves      bool              // see recipe; Kill then uses stopSignal

	// command is the server's command line, or what the image's entry point
	// adds to its own. address is where we reach the server. Nil for the
	// image's default.
	command func(address string) []string

	// ready asks the server once. Who answers on the address is certain: the
	// engine holds the port for the container.
	ready func(ctx context.Context, address string) error
}

// images start a store in a container, whichever image it is.
var images = map[string]func(context.Context, manner) (*Store, error){
	Etcd:      func(ctx context.Context, m manner) (*Store, error) { return dockerEtcd(ctx, m, &Login{}) },
	ZooKeeper: dockerZooKeeper,
	Postgres:  dockerPostgres,
	DynamoDB:  func(ctx context.Context, _ manner) (*Store, error) { return dockerDynamoDB(ctx) },
	GCS:       func(ctx context.Context, _ manner) (*Store, error) { return dockerGCS(ctx) },
	AzureBlob: func(ctx context.Context, _ manner) (*Store, error) { return dockerAzureBlob(ctx) },
	Consul:    func(ctx context.Context, _ manner) (*Store, error) { return dockerConsul(ctx) },
	MySQL:     dockerMySQL,
	S3:        func(ctx context.Context, _ manner) (*Store, error) { return dockerS3(ctx) },
}

// docker starts a container, if an engine answers and the image is on this
// machine or can be pulled.
func docker(ctx context.Context, kind string, m manner) (*Store, error) {
	start := images[kind]
	if start == nil {
		return nil, fmt.Errorf("no image of %s is known", kind)
	}
	return start(ctx, m)
}

// store is what all containers have in common as stores.
func (c *container) store(url string) *Store {
	return &Store{
		Kind:    c.kind,
		How:     c.how(),
		URL:     url,
		Address: c.address(),
		PID:     c.process(),
		server:  c,
	}
}

// dockerEtcd starts etcd. Its readiness is asked as admin, which may change
// while it runs.
func dockerEtcd(ctx context.Context, m manner, admin *Login) (*Store, error) {
	const name = "suite"
	c, err := newContainer(ctx, Etcd, image{
		port: "2379",
		command: func(address string) []string {
			return append([]string{"/usr/local/bin/etcd"}, etcdArguments(m, name, "/tmp/etcd", "http://0.0.0.0:2379", "http://"+address)...)
		},
		ready:      func(ctx context.Context, address string) error { return etcdReady(ctx, address, name, *admin) },
		stopSignal: "SIGKILL", // it waits for clients otherwise
	})
	if err != nil {
		return nil, err
	}
	s := c.store("etcd://" + c.address())
	s.Admin = *admin
	return s, nil
}

// dockerPostgres starts PostgreSQL, with the same two databases as
// startPostgres.
func dockerPostgres(ctx context.Context, m manner) (*Store, error) {
	const access = "/etc/elector-access"
	c, err := newContainer(ctx, Postgres, image{
		port: "5432",
		env: map[string]string{
			"POSTGRES_HOST_AUTH_METHOD": "trust",
			"POSTGRES_INITDB_ARGS":      "--no-sync --encoding=UTF8 --locale=C",
		},
		// The container is alone in its network; we come from the gateway's
		// address. Its own first steps are on the socket.
		files: map[string]string{access: "local all all trust\n" + postgresAccess("0.0.0.0/0")},
		command: func(string) []string {
			return append([]string{"postgres"}, postgresSet(m, "listen_addresses=*", "hba_file="+access)...)
		},
		ready:      func(ctx context.Context, address string) error { return postgresReady(ctx, address, "") },
		stopSignal: "SIGQUIT",
	})
	if err != nil {
		return nil, err
	}
	return postgresStore(ctx, c.address(), c.how(), c)
}

// dockerZooKeeper starts ZooKeeper.
func dockerZooKeeper(ctx context.Context, m manner) (*Store, error) {
	c, err := newContainer(ctx, ZooKeeper, image{
		port:       "2181",
		env:        map[string]string{"JVMFLAGS": strings.Join(zooKeeperJava(m), " ")},
		files:      map[string]string{"/conf/zoo.cfg": zooKeeperSettings(m, "/data", "0.0.0.0", 2181)},
		ready:      func(ctx context.Context, address string) error { return zooKeeperReady(ctx, address, "") },
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	return c.store("zookeeper://" + c.address()), nil
}

// dockerDynamoDB starts DynamoDB local or dynalite, which looks at none of the
// arguments, and makes the table.
func dockerDynamoDB(ctx context.Context) (*Store, error) {
	c, err := newContainer(ctx, DynamoDB, image{
		port: "8000",
		command: func(string) []string {
			// Not in memory: it has to survive a restart.
			return []string{"-jar", "DynamoDBLocal.jar", "-sharedDb", "-dbPath", "/tmp", "-disableTelemetry"}
		},
		ready:      dynamoReady,
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	if err := dynamoCreateTable(ctx, c.address(), dynamoTable); err != nil {
		return nil, errors.Join(fmt.Errorf("making the table %s: %w", dynamoTable, err), c.stop())
	}
	return c.store(dynamoURL(c.address())), nil
}

// dockerGCS starts fake-gcs-server, with the bucket elector.
func dockerGCS(ctx context.Context) (*Store, error) {
	c, err := newContainer(ctx, GCS, image{
		port: "4443",
		command: func(address string) []string {
			return []string{
				"-scheme=http",
				"-host=0.0.0.0",
				"-port=4443",
				"-public-host=" + address,
				"-external-url=http://" + address,
				"-backend=filesystem",
				"-filesystem-root=/storage",
				"-log-level=warn",
			}
		},
		ready:      gcsMakeBucket,
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	return c.store(gcsURL(c.address())), nil
}

// gcsMakeBucket makes the bucket if it is not there yet.
func gcsMakeBucket(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/storage/v1/b?project=test", strings.NewReader(`{"name":"`+gcsBucket+`"}`))
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusConflict {
		return fmt.Errorf("making the bucket %s: %s", gcsBucket, response.Status)
	}
	return nil
}

// dockerAzureBlob starts azurite, with the container elector.
func dockerAzureBlob(ctx context.Context) (*Store, error) {
	c, err := newContainer(ctx, AzureBlob, image{
		port: "10000",
		command: func(string) []string {
			return []string{"azurite-blob", "--blobHost", "0.0.0.0", "--location", "/tmp", "--skipApiVersionCheck", "--disableTelemetry", "--silent"}
		},
		ready:      azuriteMakeContainer,
		stopSignal: "SIGTERM",
		saves:      true,
	})
	if err != nil {
		return nil, err
	}
	return c.store(azureURL(c.address())), nil
}

// dockerConsul starts Consul.
func dockerConsul(ctx context.Context) (*Store, error) {
	const name = "suite"
	c, err := newContainer(ctx, Consul, image{
		port: "8500",
		command: func(string) []string {
			return append(consulArguments(name, "/tmp/consul", "0.0.0.0", "8500", 8300, 8301), "-bind=127.0.0.1", "-bootstrap-expect=1")
		},
		ready:      func(ctx context.Context, address string) error { return consulReady(ctx, address, name, "") },
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	return c.store("consul://" + c.address()), nil
}

// dockerMySQL starts MariaDB, or MySQL if an image of it is named, with the same
// databases and users as startMySQL.
func dockerMySQL(ctx context.Context, m manner) (*Store, error) {
	c, err := newContainer(ctx, MySQL, image{
		port: "3306",
		env:  map[string]string{"MYSQL_ALLOW_EMPTY_PASSWORD": "1", "MYSQL_ROOT_HOST": "%", "MYSQL_DATABASE": mariaDBDatabase},
		command: func(string) []string {
			arguments := append([]string{"--skip-name-resolve"}, mariaDBSmall...)
			if m == quick {
				arguments = append(arguments, "--innodb-flush-log-at-trx-commit=2") // it still writes at each commit
			}
			return arguments
		},
		ready:      func(ctx context.Context, address string) error { return mariaDBReady(ctx, mariaDBName(address), "") },
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	return mySQLStore(ctx, c.store(""))
}

// dockerS3 starts gofakes3, with the bucket elector.
func dockerS3(ctx context.Context) (*Store, error) {
	c, err := newContainer(ctx, S3, image{
		port:    "9000",
		command: func(string) []string { return goFakeS3Arguments("0.0.0.0:9000", "/tmp/data") },
		ready: func(ctx context.Context, address string) error {
			return s3HasBucket(ctx, address, anyS3Login, s3Bucket)
		},
		stopSignal: "SIGKILL",
	})
	if err != nil {
		return nil, err
	}
	s := c.store(s3URL(c.address(), s3Bucket))
	s.Admin = anyS3Login
	return s, nil
}

func (c *container) how() string { return "Docker image " + engine.Image(c.kind) }

func (c *container) address() string { return "127.0.0.1:" + strconv.Itoa(c.port) }
