package deploys

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/proof/stores"
)

// A book is what requests change. It refuses the tokens of old leaders.
type book struct {
	fencehttp.Handler

	mutex  sync.Mutex
	served map[string]int  // how often each request was
	tokens []elector.Token // in the order in which they came first
}

func newBook(election string) *book {
	b := &book{served: map[string]int{}}
	b.Election = election
	b.Next = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		token, err := elector.ParseToken(r.Header.Get(elector.TokenHeader))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.served[r.URL.Path]++
		if len(b.tokens) == 0 || b.tokens[len(b.tokens)-1] != token {
			b.tokens = append(b.tokens, token)
		}
	})
	return b
}

// A balancer sends requests in turn to the processes that are ready. It knows no leader.
type balancer struct {
	t      *testing.T
	client *http.Client
	pace   chan struct{} // one for each request that may be sent
	least  int           // requests, before deploys go on

	mutex   sync.Mutex
	all     []*process
	sent    int // requests through the balancer
	direct  int // requests straight to processes that stop, and served
	longest time.Duration
	gone    []string // requests to processes that had gone: they had no effect
	fails   []string
	changed chan struct{}

	senders, probes sync.WaitGroup
}

// add lets a process get requests once it is ready, until it is so no longer.
func (b *balancer) add(p *process) {
	b.mutex.Lock()
	b.all = append(b.all, p)
	b.mutex.Unlock()
	first := make(chan struct{})
	seen := sync.OnceFunc(func() { close(first) })
	b.probes.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			answer, err := b.client.Get("http://" + p.address + "/ready")
			if err == nil {
				io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			ready := err == nil && answer.StatusCode == http.StatusOK
			b.mutex.Lock()
			p.serves = ready
			over := p.stops && !ready
			b.mutex.Unlock()
			if ready || over {
				seen()
			}
			if over {
				return
			}
			<-tick.C
		}
	})
	<-first
}

// stop sends requests straight to a process that is about to stop, until it has gone.
func (b *balancer) stop(p *process) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p.stops = true
	b.senders.Go(func() {
		for n := 0; ; n++ {
			path := fmt.Sprintf("/%s-%d", p.id, n)
			err := b.post(p, path)
			b.mutex.Lock()
			var op *net.OpError
			switch {
			case err == nil:
				b.direct++
			case errors.As(err, &op), errors.Is(err, io.EOF):
				b.gone = append(b.gone, path)
			default:
				b.fails = append(b.fails, fmt.Sprintf("%s straight to %s: %v", path, p.id, err))
			}
			b.mutex.Unlock()
			if err != nil {
				return
			}
		}
	})
}

// run sends requests until ctx ends.
func (b *balancer) run(ctx context.Context) {
	for range 32 {
		b.senders.Go(func() {
			for {
				select {
				case <-b.pace:
				case <-ctx.Done():
					return
				}
				b.send()
			}
		})
	}
}

func (b *balancer) send() {
	b.mutex.Lock()
	ready := slices.Clone(b.all)
	ready = slices.DeleteFunc(ready, func(p *process) bool { return !p.serves })
	n := b.sent
	b.sent++
	close(b.changed)
	b.changed = make(chan struct{})
	b.mutex.Unlock()
	path, start := fmt.Sprintf("/%d", n), time.Now()
	err := errors.New("no process is ready")
	to := "none"
	if len(ready) > 0 {
		p := ready[n%len(ready)]
		to, err = p.id, b.post(p, path)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.longest = max(b.longest, time.Since(start))
	if err != nil {
		b.fails = append(b.fails, fmt.Sprintf("%s to %s: %v", path, to, err))
	}
}

// post sends a request that may not be sent twice.
func (b *balancer) post(p *process, path string) error {
	answer, err := b.client.Post("http://"+p.address+path, "text/plain", strings.NewReader("a request"))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// await waits until a deploy may go on: requests are spread over all of them.
func (b *balancer) await(ctx context.Context) {
	b.mutex.Lock()
	after := b.sent + b.least
	b.mutex.Unlock()
	b.until(ctx, after)
}

// until waits until so many requests were sent.
func (b *balancer) until(ctx context.Context, sent int) {
	for {
		b.mutex.Lock()
		enough, changed := b.sent >= sent, b.changed
		b.mutex.Unlock()
		if enough {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.t.Fatal(context.Cause(ctx))
		}
	}
}

// TestRequests deploys a service of three processes again and again, while a balancer
// that knows no leader sends it requests, and others go straight to the processes that
// stop. Each request through the balancer is served, once, under a valid lease.
// ELECTOR_DEPLOYS=10 has ten deploys and 20,000 requests; the default is two and 1,000.
func TestRequests(t *testing.T) {
	deploys, requests, most := count(t, 2), 1000, 2
	if deploys != 2 {
		requests, most = 2000*deploys, 1
	}
	for _, kind := range []string{stores.Etcd, stores.Postgres, file} {
		t.Run(kind, func(t *testing.T) {
			s := newService(t, kind)
			s.linger = time.Second
			kept := newBook(s.election)
			server := httptest.NewServer(kept)
			defer server.Close()
			s.book = server.URL
			transport := &http.Transport{MaxIdleConnsPerHost: 100}
			defer transport.CloseIdleConnections()
			b := &balancer{t: t, client: &http.Client{Transport: transport}, pace: make(chan struct{}), changed: make(chan struct{}), least: requests / (deploys*3 + 1) / 2}
			s.balancer = b
			var all []*process
			for range 3 {
				p := s.start("v0", 0)
				b.add(p)
				all = append(all, p)
			}
			s.leader(all)
			ctx, cancel := context.WithCancel(s.ctx)
			defer cancel()
			b.senders.Go(func() {
				tick := time.NewTicker(2 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
					case <-ctx.Done():
						return
					}
					select {
					case b.pace <- struct{}{}:
					default: // all wait: the machine is slow
					}
				}
			})
			b.run(ctx)
			for i := range deploys {
				all = s.roll(fmt.Sprintf("deploy %d", i+1), all, fmt.Sprintf("v%d", i+1), i+1, most)
			}
			b.until(s.ctx, requests)
			cancel()
			b.senders.Wait()
			s.judge(b, kept, deploys, deploys*most)
			b.mutex.Lock()
			for _, p := range b.all {
				p.stops = true
			}
			b.mutex.Unlock()
			for _, p := range all {
				p.End()
			}
			b.probes.Wait()
		})
	}
}

// judge fails the test unless each request was served once, by one leader after the other.
func (s *service) judge(b *balancer, kept *book, least, most int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	kept.mutex.Lock()
	defer kept.mutex.Unlock()
	for i, f := range b.fails {
		if i < 10 {
			s.t.Errorf("request %s", f)
		}
	}
	twice, never := 0, 0
	for n := range b.sent {
		switch kept.served[fmt.Sprintf("/%d", n)] {
		case 0:
			never++
		case 1:
		default:
			twice++
		}
	}
	for path, n := range kept.served {
		if n > 1 {
			s.t.Errorf("request %s was served %d times", path, n)
		}
	}
	for _, path := range b.gone {
		if kept.served[path] > 0 {
			s.t.Errorf("request %s got no answer, and had an effect", path)
		}
	}
	changes := len(s.terms) - 1
	var gap time.Duration
	for i, t := range s.terms[1:] {
		gap = max(gap, t.from-s.terms[i].to)
	}
	s.t.Logf("%d requests and %d straight to processes that stopped: %d failed, %d served twice, %d never; %d changes of leader, %v without one at most; the longest request took %v", b.sent, b.direct, len(b.fails), twice, never, changes, gap.Round(100*time.Microsecond), b.longest.Round(time.Millisecond))
	if len(b.fails)+never > 0 {
		s.t.Errorf("%d requests failed, and %d were not served", len(b.fails), never)
	}
	if changes < least || changes > most {
		s.t.Errorf("%d changes of leader, not %d to %d", changes, least, most)
	}
	if !slices.IsSorted(kept.tokens) || len(kept.tokens) > len(s.terms) {
		s.t.Errorf("the tokens that requests came with: %v", kept.tokens)
	}
	if b.direct < least {
		s.t.Errorf("processes that stopped have served %d requests", b.direct)
	}
}
