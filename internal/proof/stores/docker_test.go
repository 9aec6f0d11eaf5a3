package stores

import (
	"strings"
	"testing"
)

// noImage is an image that no machine has and no registry is asked for.
const noImage = "local/elector-nothing:0"

// An order for Docker is kept or refused, never replaced by something else,
// with an engine on the machine and without.
func TestDockerByOrder(t *testing.T) {
	t.Setenv("ELECTOR_TEST_METHOD", "docker")
	for kind, variable := range map[string]string{
		Etcd:      "ELECTOR_TEST_IMAGE_ETCD",
		Postgres:  "ELECTOR_TEST_IMAGE_POSTGRES",
		ZooKeeper: "ELECTOR_TEST_IMAGE_ZOOKEEPER",
		DynamoDB:  "ELECTOR_TEST_IMAGE_DYNAMODB",
		GCS:       "ELECTOR_TEST_IMAGE_GCS",
		AzureBlob: "ELECTOR_TEST_IMAGE_AZUREBLOB",
		Consul:    "ELECTOR_TEST_IMAGE_CONSUL",
		MySQL:     "ELECTOR_TEST_IMAGE_MYSQL",
		S3:        "ELECTOR_TEST_IMAGE_S3",
	} {
		t.Setenv(variable, noImage)
		s, err := Start(t.Context(), kind)
		if err == nil {
			t.Errorf("%s started without its image: %v, %v", kind, s, s.Stop())
			continue
		}
		if says := err.Error(); strings.Contains(says, byProcess) || !strings.Contains(says, "make images") && !strings.Contains(says, "no Docker engine") {
			t.Errorf("%s says %v", kind, err)
		}
	}
	s, err := EtcdWithAuth(t.Context(), "/suite/")
	if err == nil {
		t.Errorf("etcd with passwords started without its image: %v, %v", s, s.Stop())
	}
}

// Without an order, a local process does it, and says why.
func TestDockerFallsThrough(t *testing.T) {
	t.Setenv(variables[Etcd], "")
	t.Setenv("ELECTOR_TEST_METHOD", "")
	t.Setenv("ELECTOR_TEST_IMAGE_ETCD", noImage)
	s := obtain(t, Etcd)
	if !strings.Contains(s.How, byProcess) || !strings.Contains(s.How, "not by docker: ") || strings.Contains(s.How, "\n") {
		t.Errorf("it says %q", s.How)
	}
}

func TestUnknownMethod(t *testing.T) {
	t.Setenv("ELECTOR_TEST_METHOD", "pigeon")
	if _, err := Start(t.Context(), Etcd); err == nil || !strings.Contains(err.Error(), "known are docker and process") {
		t.Errorf("it says %v", err)
	}
}
