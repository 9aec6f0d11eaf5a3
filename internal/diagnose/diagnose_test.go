package diagnose

import (
	"errors"
	"strings"
	"testing"
)

// What go, npm and apt-get print, and the words that the advice must have.
func TestLine(t *testing.T) {
	for printed, want := range map[string]string{
		"go: write /x/y.zip: no space left on device":                                                     "disk is full",
		"npm error code ENOSPC\nnpm error syscall write":                                                  "disk is full",
		"E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (apt-get)":            "apt's lock",
		"reading https://proxy/x/@v/v1.zip: 403 Forbidden":                                                "refuses a package",
		"npm error code E403\nnpm error 403 Forbidden - GET ":                                             "refuses a package",
		"E: Failed to fetch http://deb/x.deb  403  Forbidden [IP: 127.0.0.1 80]":                          "refuses a package",
		"dial tcp: lookup proxy on 127.0.0.1:53: no such host":                                            "network",
		"dial tcp: lookup proxy: Temporary failure in name resolution\nTemporary failure resolving 'deb'": "network",
		"npm error code EAI_AGAIN":                                                                        "network",
		"dial tcp 127.0.0.1:9: connect: connection refused":                                               "network",
		"undefined: x": "",
	} {
		if got := Line(printed); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: it says %q, want %q", printed, got, want)
		}
	}
}

func TestFailure(t *testing.T) {
	for err, want := range map[string]string{
		"no java":                       "zookeeper: no java",
		"it does not build\nx.go:1: y":  "zookeeper: it does not build\n\tx.go:1: y",
		"npm ci: exit 1\nnpm code E403": "zookeeper: a registry refuses a package (403); ask those who run it to allow the package\n\tnpm ci: exit 1\n\tnpm code E403",
	} {
		if got := Failure("zookeeper", errors.New(err)); got != want {
			t.Errorf("it writes %q, want %q", got, want)
		}
	}
}
