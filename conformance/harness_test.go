package conformance

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/elector-go/elector/backends"
)

// TestProxy: a proxy passes on what both sides say, and loses what the fault says.
func TestProxy(t *testing.T) {
	store, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	heard := make(chan byte, 8)
	go func() { // echoes bytes
		for {
			c, err := store.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for b := make([]byte, 1); ; {
					if _, err := c.Read(b); err != nil {
						return
					}
					heard <- b[0]
					c.Write(b)
				}
			}()
		}
	}()
	var address string
	_, set := ThroughProxy(store.Addr().String(), func(_ testing.TB, through string) backends.Backend {
		address = through
		return nil
	})(t)
	ask := func(what byte) error {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.Write([]byte{what})
		_, err = io.ReadFull(c, []byte{0})
		return err
	}
	for i, f := range []Fault{NoFault, LoseAnswers, LoseRequests, NoFault} {
		set(f)
		if err := ask(byte(i)); (err == nil) != (f == NoFault) {
			t.Errorf("fault %d: the client's error is %v", f, err)
		}
		if f != LoseRequests {
			if b := <-heard; b != byte(i) {
				t.Errorf("fault %d: the store got %d, want %d", f, b, i)
			}
		}
	}
}

// TestLegend: the legend explains the first part of each case's name.
func TestLegend(t *testing.T) {
	for _, g := range stages {
		for _, c := range g.cases {
			if first, _, _ := strings.Cut(c.name, "/"); !strings.Contains(" "+strings.ReplaceAll(Legend, "\n", " "), " "+first+": ") {
				t.Errorf("the legend does not explain %s", c.name)
			}
		}
	}
}

// TestMaxContent: the suite writes no content that is longer than the harness
// allows.
func TestMaxContent(t *testing.T) {
	h := mutant{}.harness()
	h.MaxContent = 64 << 10
	put, longest := h.Raw.Put, 0
	h.Raw.Put = func(t testing.TB, name string, content []byte) {
		if len(content) > h.MaxContent {
			t.Fatalf("%d bytes are more than MaxContent", len(content))
		}
		longest = max(longest, len(content))
		put(t, name, content)
	}
	stage{"backend", basicCases, 1}.run(t, h)
	stage{"backend", backendCases, 1}.run(t, h)
	if longest < h.MaxContent/2 {
		t.Errorf("no content was longer than %d bytes", longest)
	}
}
