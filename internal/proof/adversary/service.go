package adversary

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/fence/fencehttp"
	"github.com/elector-go/elector/internal/proof/adversary/wire"
)

// A service takes the writes of an election's leaders: guarded by a Fence, and plain ones.
//
// A write whose point is Admitted stands still between its admission and its being made,
// and its leader is stopped meanwhile: the guarded one until a newer leader waits for it,
// the plain one, which looked at the highest token before, until a newer one has written.
type service struct {
	url      string
	server   http.Server
	longest  time.Duration // of a pause beyond that
	fence    elector.Fence
	election string
	outside  bool // the Fence admits, and the write is made outside of it: a mutant

	// halt stops a candidate, and returns what lets it go on.
	halt func(candidate string, token uint64) (resume func(short bool), err error)
	end  chan struct{} // closed to end all pauses

	mutex   sync.Mutex
	writes  map[bool][]wire.Write // by whether they are guarded
	highest uint64                // plain token
	looked  map[uint64]bool       // tokens whose plain write stands still
	changed chan struct{}
}

func newService(election string, longest time.Duration) (*service, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &service{
		url: "http://" + l.Addr().String() + "/", election: election, longest: longest, end: make(chan struct{}),
		writes: map[bool][]wire.Write{}, looked: map[uint64]bool{}, changed: make(chan struct{}),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/guarded", s.guarded)
	mux.HandleFunc("/plain", s.plain)
	s.server.Handler = mux
	s.server.ReadHeaderTimeout = time.Minute
	go s.server.Serve(l) // until Close
	return s, nil
}

// guarded serves a write under the Fence.
func (s *service) guarded(answer http.ResponseWriter, r *http.Request) {
	write, err := wire.Parse(r.FormValue("write"))
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	made := http.HandlerFunc(func(answer http.ResponseWriter, inside *http.Request) {
		if write.Point == wire.Admitted {
			resume, err := s.stand(inside.Context(), r.FormValue("candidate"), write.Token)
			if err != nil {
				http.Error(answer, err.Error(), http.StatusInternalServerError)
				return
			}
			defer resume() // after the write
		}
		s.make(true, write)
		answer.WriteHeader(http.StatusNoContent)
	})
	door := &fencehttp.Handler{Fence: &s.fence, Election: s.election, Next: made}
	// A write that has arrived is made even if its leader's connection ends.
	r = r.WithContext(context.WithoutCancel(r.Context()))
	if !s.outside {
		door.ServeHTTP(answer, r)
		return
	}
	admitted := false
	door.Next = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { admitted = true })
	if door.ServeHTTP(answer, r); admitted {
		made.ServeHTTP(answer, r)
	}
}

// stand stops the leader once its plain write stands still too, and blocks until a newer
// leader waits, or has written if the Fence does not keep it out.
func (s *service) stand(inside context.Context, candidate string, token uint64) (resume func(), err error) {
	if !s.await(func() bool { return s.looked[token] }) {
		return nil, fmt.Errorf("no plain write stands still")
	}
	goOn, err := s.halt(candidate, token)
	if err != nil {
		return nil, err
	}
	short := false
	if s.outside {
		short = !s.await(func() bool { n := len(s.writes[true]); return n > 0 && s.writes[true][n-1].Token > token })
	} else {
		select {
		case <-inside.Done():
		case <-s.end:
			short = true
		}
	}
	s.pause()
	return func() { goOn(short) }, nil
}

// plain serves a write without a guard.
func (s *service) plain(answer http.ResponseWriter, r *http.Request) {
	write, err := wire.Parse(r.FormValue("write"))
	if err != nil {
		http.Error(answer, err.Error(), http.StatusBadRequest)
		return
	}
	if write.Point == wire.Admitted {
		s.mutex.Lock()
		stale := write.Token < s.highest
		s.looked[write.Token] = true
		s.change()
		s.mutex.Unlock()
		if stale {
			http.Error(answer, "a newer leader has written", http.StatusConflict)
			return
		}
		s.await(func() bool { return s.highest > write.Token })
	}
	s.make(false, write)
	answer.WriteHeader(http.StatusNoContent)
}

// make makes a write.
func (s *service) make(guarded bool, w wire.Write) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.writes[guarded] = append(s.writes[guarded], w)
	if !guarded {
		s.highest = max(s.highest, w.Token)
	}
	s.change()
}

// change is called with the mutex.
func (s *service) change() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await blocks until cond, which is called with the mutex, and reports false if all pauses
// end before.
func (s *service) await(cond func() bool) bool {
	for {
		s.mutex.Lock()
		done, changed := cond(), s.changed
		s.mutex.Unlock()
		if done {
			return true
		}
		select {
		case <-changed:
		case <-s.end:
			return false
		}
	}
}

func (s *service) pause() {
	select {
	case <-time.After(rand.N(s.longest)):
	case <-s.end:
	}
}

// read returns the writes in their order.
func (s *service) read(guarded bool) []wire.Write {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.writes[guarded]
}
