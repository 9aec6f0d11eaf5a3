package fences

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/child"
	"github.com/elector-go/elector/internal/proof/stores"
)

// The worker of examples/service on a real store, in real processes, through what its
// unit test scripts: it wins, the store is away, it leads again, follows, and hands over
// when it is told to stop.
func TestService(t *testing.T) {
	store, err := stores.Start(t.Context(), stores.Etcd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Stop(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	build := func(name, in string, pkg string) string {
		program := filepath.Join(dir, name)
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg)
		cmd.Dir = in
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		return program
	}
	service := build("service", "../../../examples/service", ".")
	book := begin(t, build("fencedhttp", "../../..", "./examples/fencedhttp"), "", "serve", dir, "127.0.0.1:0").says(t, "^serves (.*)$")[0]
	start := func() (p *process, url string) {
		p = begin(t, service, store.URL, "-book", book, "-ttl", "3s")
		return p, "http://" + p.says(t, `serves address=(\S+)`)[0]
	}
	leads := func(p *process) elector.Token {
		token, err := elector.ParseToken(p.says(t, `elector: leads .* token=(\d+)`)[0])
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	writes := func(p *process) string { return `-` + strconv.Itoa(p.Process.Pid) + `-\w+ has written [1-9]` }
	terminate := func(p *process) {
		if err := child.Signal(syscall.SIGTERM, p.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if err := p.end(); err != nil {
			t.Errorf("a process that was told to stop: %v", err)
		}
	}

	first, url := start()
	before := leads(first)
	answers(t, url+"/entries", writes(first))

	if err := store.Pause(); err != nil {
		t.Fatal(err)
	}
	first.says(t, "elector: leads no more .*cause=lost error=.*the lease is lost")
	answers(t, url+"/metrics", `elector_transitions_total{backend="etcd",cause="lost",election="bookkeeper"} 1`)
	if err := store.Continue(); err != nil {
		t.Fatal(err)
	}
	if after := leads(first); after <= before {
		t.Errorf("after an outage it leads with token %d, before with %d", after, before)
	}

	second, url := start()
	answers(t, url+"/ready", "^ready")
	answers(t, url+"/entries", writes(first)) // forwarded
	terminate(first)
	leads(second)
	answers(t, url+"/entries", writes(second))
	answers(t, book, "(?s)an entry.*an entry.*an entry")
	terminate(second)
}

// answers waits until a GET of the URL answers with a body that matches the pattern.
func answers(t *testing.T, url, pattern string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for last := ""; ; {
		request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer, err := client.Do(request); err != nil {
			last = err.Error()
		} else {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			last = answer.Status + ": " + string(body)
			if answer.StatusCode == http.StatusOK && regexp.MustCompile(pattern).Match(body) {
				return
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s has not answered %q for a minute; the last answer was %s", url, pattern, last)
		}
	}
}
