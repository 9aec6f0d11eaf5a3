package stores

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

const gcsBucket = "elector"

// startGCS starts fake-gcs-server, with the bucket elector.
//
// It keeps objects as files, because Restart is to find them again, and their
// generations with them. That has flaws that the cloud has not: a write that a
// kill interrupts can leave an object that cannot be read, the old content gone;
// and a read that a write overtakes can fail its check sum.
func startGCS(ctx context.Context) (*Store, error) {
	program, err := binaries.FakeGCS()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	name := "fake-gcs-server " + binaries.FakeGCSVersion
	s, err := newServer(ctx, recipe{
		name:      name,
		program:   program,
		prepare:   gcsBuckets,
		arguments: gcsArguments,
		ready:     func(ctx context.Context, s *server) error { return gcsReady(ctx, s.address(), gcsName(s)) },
		quit:      syscall.SIGKILL,
	})
	if err != nil {
		return nil, err
	}
	return &Store{
		Kind:    GCS,
		How:     "local process " + name + " (built from its module)",
		URL:     gcsURL(s.address()),
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}, nil
}

func gcsURL(address string) string {
	return "gs://" + gcsBucket + "?" + url.Values{"endpoint": {"http://" + address + "/storage/v1/"}}.Encode()
}

// gcsName is the name of a bucket that no other server has.
func gcsName(s *server) string { return filepath.Base(s.dir) }

func gcsData(s *server) string { return filepath.Join(s.dir, "data") }

// gcsBuckets makes the buckets, which are folders.
func gcsBuckets(_ context.Context, s *server) error {
	for _, bucket := range []string{gcsBucket, gcsName(s)} {
		if err := os.MkdirAll(filepath.Join(gcsData(s), bucket), 0o700); err != nil {
			return err
		}
	}
	return nil
}

func gcsArguments(s *server) []string {
	return []string{
		"-scheme=http",
		"-host=127.0.0.1",
		"-port=" + strconv.Itoa(s.port),
		"-public-host=" + s.address(),
		"-external-url=http://" + s.address(),
		"-backend=filesystem",
		"-filesystem-root=" + gcsData(s),
		"-log-level=warn",
	}
}

// gcsReady reads a bucket's attributes.
func gcsReady(ctx context.Context, address, bucket string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/storage/v1/b/"+url.PathEscape(bucket), nil)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s for the bucket %s", response.Status, bucket)
	}
	return nil
}
