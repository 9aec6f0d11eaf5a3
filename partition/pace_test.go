package partition

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/elector-go/elector/backends"
)

// slowWriting is a store that takes few writes of a record, as Cloud Storage: two of a seat are
// further apart than a request lasts.
type slowWriting struct{ backends.Backend }

func (s slowWriting) Describe() backends.Description {
	d := s.Backend.Describe()
	d.MinTTL, d.MinWriteInterval = 5*time.Second, 1200*time.Millisecond
	return d
}

// Members that begin together share the partitions, and none fails to write its seat.
func TestSlowWriting(t *testing.T) {
	withFleet(t, 8, func(f *fleet) {
		f.ttl = 5 * time.Second
		var logged lines
		var all []*process
		for _, id := range []string{"a", "b", "c"} {
			all = append(all, f.joinOn(id, func(o *Options) { o.Elector.Logger = slog.New(slog.NewTextHandler(&logged, nil)) },
				func(l *link) backends.Backend { return slowWriting{l} }))
		}
		f.settles(30*time.Second, "a", "b", "c")
		if n := logged.count("cannot write its seat"); n > 0 {
			t.Errorf("members have failed to write their seats %d times", n)
		}
		f.ends(all...)
	})
}

// Lines are what was logged.
type lines struct {
	mutex sync.Mutex
	text  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(text string) int {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return strings.Count(l.text.String(), text)
}
