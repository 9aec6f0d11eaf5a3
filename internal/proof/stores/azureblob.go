package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"syscall"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	blobs "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/elector-go/elector/internal/proof/internal/binaries"
)

// The account and the key that every Azurite has, as Azure's documentation names
// them.
const (
	azuriteAccount   = "devstoreaccount1"
	azuriteKey       = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	azuriteContainer = "elector"
)

// startAzureBlob starts azurite, with the container elector.
//
// It keeps blobs as files, and what it knows of them in its memory: that it writes to
// its disk when it ends in order, and every five seconds. So Kill lets it end in
// order. It may lose a write that it acknowledges meanwhile.
func startAzureBlob(ctx context.Context) (*Store, error) {
	node, err := binaries.Node()
	if err != nil {
		return nil, err
	}
	script, err := binaries.Azurite()
	if err != nil {
		return nil, fmt.Errorf("%w; run make stores", err)
	}
	name := "azurite " + binaries.AzuriteVersion
	s, err := newServer(ctx, recipe{
		name:    name,
		program: node,
		arguments: func(s *server) []string {
			return []string{script,
				"--blobHost", "127.0.0.1",
				"--blobPort", strconv.Itoa(s.port),
				"--location", s.dir,
				"--skipApiVersionCheck", "--disableTelemetry", "--silent",
			}
		},
		ready: azuriteReady,
		quit:  syscall.SIGTERM,
		saves: true,
	})
	if err != nil {
		return nil, err
	}
	store := &Store{
		Kind:    AzureBlob,
		How:     "local process " + name + " (from npm)",
		URL:     azureURL(s.address()),
		Address: s.address(),
		PID:     s.pid,
		server:  s,
	}
	if err := azuriteMakeContainer(ctx, s.address()); err != nil {
		return nil, errors.Join(err, store.Stop())
	}
	return store, nil
}

func azureURL(address string) string {
	return "azureblob://" + azuriteAccount + "/" + azuriteContainer + "?" + url.Values{"endpoint": {azuriteEndpoint(address)}}.Encode()
}

// azuriteMakeContainer makes the container if it is not there yet.
func azuriteMakeContainer(ctx context.Context, address string) error {
	client, done, err := AzuriteContainer(address, azuriteContainer)
	if err != nil {
		return err
	}
	defer done()
	_, err = client.Create(policy.WithRetryOptions(ctx, policy.RetryOptions{MaxRetries: -1}), nil)
	if err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return fmt.Errorf("making the container %s: %w", azuriteContainer, err)
	}
	return nil
}

// azuriteReady looks into its log: nothing that it answers shows whose it is, but it
// prints that it listens only when the port is its own.
func azuriteReady(_ context.Context, s *server) error {
	if !bytes.Contains(s.log(s.logBegins), []byte("successfully listens on http://"+s.address())) {
		return errors.New("it has not said that it listens")
	}
	return nil
}

func azuriteEndpoint(address string) string { return "http://" + address + "/" + azuriteAccount }

// AzuriteContainer is a client of a container on an azurite, with policies that see
// each call. done closes its connections.
func AzuriteContainer(address, name string, policies ...policy.Policy) (client *blobs.Client, done func(), err error) {
	key, err := blobs.NewSharedKeyCredential(azuriteAccount, azuriteKey)
	if err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{}
	options := &blobs.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: &http.Client{Transport: transport}, PerCallPolicies: policies}}
	client, err = blobs.NewClientWithSharedKeyCredential(azuriteEndpoint(address)+"/"+name, key, options)
	return client, transport.CloseIdleConnections, err
}
