package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const s3Bucket = "elector"

var (
	anyS3Login  = Login{"test", "test"}     // what AnyCredentials gives
	s3rverLogin = Login{"S3RVER", "S3RVER"} // its only one
)

// startS3 starts gofakes3, with the bucket elector. It keeps objects in a file, and
// looks at no credentials.
func startS3(ctx context.Context) (*Store, error) {
	program, err := binaries.GoFakeS3()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores KINDS=s3", err)
	}
	return startS3As(ctx, "gofakes3 "+binaries.GoFakeS3Version+" (built from its module, with answers copied)", anyS3Login, recipe{
		program: program,
		arguments: func(s *server) []string {
			return goFakeS3Arguments(s.address(), filepath.Join(s.dir, "data"))
		},
		// Nothing that it answers shows whose it is, but it prints that it listens.
		ready: func(ctx context.Context, s *server) error {
			return s3Ready(ctx, s, anyS3Login, "using port: "+strconv.Itoa(s.port), s3Bucket)
		},
	})
}

// goFakeS3Arguments make gofakes3 keep objects in a file, so that they outlast it.
func goFakeS3Arguments(address, file string) []string {
	return []string{"-host=" + address, "-backend=bolt", "-bolt.db=" + file, "-initialbucket=" + s3Bucket, "-quiet"}
}

// StartVersityGW starts versitygw, which serves a folder as S3, as a process. Its
// reads can be torn, so it is no store for the whole suite. See Start.
func StartVersityGW(ctx context.Context) (*Store, error) {
	program, err := binaries.VersityGW()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores KINDS=s3", err)
	}
	return startS3As(ctx, "versitygw "+binaries.VersityGWVersion+" (built from its module)", anyS3Login, recipe{
		program: program,
		prepare: func(_ context.Context, s *server) error { // buckets are folders
			for _, bucket := range []string{s3Bucket, s.dirName()} {
				if err := os.MkdirAll(filepath.Join(s.dir, "data", bucket), 0o700); err != nil {
					return err
				}
			}
			return nil
		},
		arguments: func(s *server) []string {
			return []string{"--access=" + anyS3Login.User, "--secret=" + anyS3Login.Password, "--port=" + s.address(), "--quiet", "posix", filepath.Join(s.dir, "data")}
		},
		// No other server has a bucket of that name.
		ready: func(ctx context.Context, s *server) error { return s3Ready(ctx, s, anyS3Login, "", s.dirName()) },
	})
}

// StartS3rver starts s3rver, which ignores the conditions of writes, as a process. It
// is no store of elections. See Start.
func StartS3rver(ctx context.Context) (*Store, error) {
	node, err := binaries.Node()
	if err != nil {
		return nil, err
	}
	script, err := binaries.S3rver()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores KINDS=s3", err)
	}
	return startS3As(ctx, "s3rver "+binaries.S3rverVersion+" (from npm)", s3rverLogin, recipe{
		program: node,
		arguments: func(s *server) []string {
			return []string{script, "--directory", filepath.Join(s.dir, "data"), "--address", "127.0.0.1", "--port", strconv.Itoa(s.port),
				"--allow-mismatched-signatures", "--no-vhost-buckets", "--configure-bucket", s3Bucket}
		},
		ready: func(ctx context.Context, s *server) error { return s3Ready(ctx, s, s3rverLogin, "listening", s3Bucket) },
	})
}

func startS3As(ctx context.Context, name string, login Login, r recipe) (*Store, error) {
	r.name, r.quit = name, syscall.SIGKILL
	s, err := newServer(ctx, r)
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    S3,
		How:     "local process " + name,
		URL:     s3URL(s.address(), s3Bucket),
		Address: s.address(),
		PID:     s.pid,
		Admin:   login,
		server:  s,
	}, nil
}

func s3URL(address, bucket string) string {
	return "s3://" + bucket + "?" + url.Values{"endpoint": {"http://" + address}}.Encode()
}

// s3Ready looks for words in the server's log, then at a bucket.
func s3Ready(ctx context.Context, s *server, login Login, words, bucket string) error {
	if !bytes.Contains(s.log(s.logBegins), []byte(words)) {
		return errors.New("it has not said that it listens")
	}
	return s3HasBucket(ctx, s.address(), login, bucket)
}

func s3HasBucket(ctx context.Context, address string, login Login, bucket string) error {
	client, done := S3Client("http://"+address, login)
	defer done()
	_, err := client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	return err
}

// S3Client returns a client of one of our servers, which sends each request once. done
// closes its connections.
func S3Client(endpoint string, login Login) (client *s3.Client, done func()) {
	transport := &http.Transport{}
	client = s3.New(s3.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		UsePathStyle: true,
		Credentials:  credentials.NewStaticCredentialsProvider(login.User, login.Password, ""),
		HTTPClient:   &http.Client{Transport: transport},
		Retryer:      aws.NopRetryer{},
		APIOptions: []func(*middleware.Stack) error{func(stack *middleware.Stack) error { // gofakes3 keeps the check sum of an older content
			for _, id := range []string{"AWSChecksum:SetupInputContext", "AWSChecksum:SetupOutputContext"} {
				_, _ = stack.Initialize.Remove(id)
			}
			return nil
		}},
	})
	return client, transport.CloseIdleConnections
}
