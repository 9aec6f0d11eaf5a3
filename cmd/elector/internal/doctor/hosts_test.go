package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/memory"
)

// A pair is two stores behind one URL, each with the record of an earlier doctor.
type pair struct {
	stores  [2]*memory.Store
	calls   int // of all handles
	handles int // on the URL as a whole
}

var errDown = fmt.Errorf("%w: no answer", backends.ErrUnavailable)

func newPair() *pair {
	p := &pair{}
	for i := range p.stores {
		r := backends.Record{Token: uint64(i + 5), TTL: time.Hour, RenewEvery: time.Minute, Attempt: backends.Attempt{Nonce: fmt.Sprint("earlier", i), Sequence: 3}}
		p.stores[i] = memory.NewStore()
		p.stores[i].Put(Election, backends.Encode(Election, r))
	}
	return p
}

func (p *pair) open(u *url.URL) (backends.Backend, error) {
	how, readOnly := strings.Trim(u.Path, "/"), u.Query().Has("readonly")
	first, second := p.stores[0].Handle(), p.stores[1].Handle()
	switch {
	case strings.Contains(u.Host, ","):
		return first, nil
	case u.Host == "one": // an address with two stores behind it
		p.handles++
		return &balanced{first, second, p, how, p.handles}, nil
	case u.Host == "a":
		return first, nil
	case how == "down":
		return nil, errDown
	case how == "bare":
		return nil, fmt.Errorf("%w: there is no table", backends.ErrMisconfigured)
	case how == "standby" && !readOnly:
		return nil, fmt.Errorf("%w: it is a standby", backends.ErrReadOnly)
	case how == "same":
		return first, nil
	}
	return second, nil
}

// A balanced handle answers from one store or the other.
type balanced struct {
	backends.Backend
	other  backends.Backend
	pair   *pair
	how    string
	handle int
}

func (b *balanced) behind() backends.Backend {
	b.pair.calls++
	if b.how == "in turn" && b.pair.calls%2 == 0 || b.how == "in threes" && b.pair.calls/3%2 == 1 || b.how == "by connection" && b.handle%2 == 0 {
		return b.other
	}
	return b.Backend
}

func (b *balanced) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.behind().Load(ctx, name)
}

func (b *balanced) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.behind().Swap(ctx, name, prev, next)
}

var pairs = map[string]*pair{}

func init() {
	backends.Register("pair", func(_ context.Context, u *url.URL) (backends.Backend, error) { return pairs[u.Path].open(u) })
}

// Two stores behind one URL are found, whether it names them or a balancer does, and the
// doctor writes and creates nothing on the second one.
func TestTwoStores(t *testing.T) {
	for address, want := range map[string]struct {
		readOnly  bool
		level     string
		check     string
		seen, fix string
		err       error
	}{
		"pair://one/in turn":       {level: Fail, check: "one store", seen: "go back", fix: "two answer behind it", err: backends.ErrMisconfigured},
		"pair://one/in threes":     {level: Fail, check: "one store", seen: "go back", fix: "two answer behind it", err: backends.ErrMisconfigured},
		"pair://one/by connection": {level: Fail, check: "one store", seen: "two connections", fix: "two answer behind it", err: backends.ErrMisconfigured},
		"pair://a,b/apart":         {level: Fail, check: "one store", seen: "a and b are two stores", fix: "name only hosts of one store", err: backends.ErrMisconfigured},
		"pair://a,b/looked at":     {readOnly: true, level: Fail, check: "one store", seen: "a and b are two stores", fix: "name only hosts of one store", err: backends.ErrMisconfigured},
		"pair://a,b/same":          {level: OK, check: "one store", seen: "a, b show the record"},
		"pair://a,b/bare":          {level: Fail, check: "host b", seen: "there is no table", fix: "like the other hosts", err: backends.ErrMisconfigured},
		"pair://a,b/down":          {level: Warn, check: "host b", seen: "no answer", fix: "start it"},
		"pair://a,b/standby":       {level: Warn, check: "one store", seen: "b takes no writes and does not show", fix: "how far behind"},
	} {
		u, _ := url.Parse(address)
		p := newPair()
		pairs[u.Path] = p
		was := string(p.stores[1].Get(Election))
		var lines []Line
		var err error
		synctest.Test(t, func(t *testing.T) {
			err = Run(t.Context(), Options{URL: address, TTL: time.Hour, ReadOnly: want.readOnly}, func(l Line) { lines = append(lines, l) })
		})
		found := slices.ContainsFunc(lines, func(l Line) bool {
			return l.Level == want.level && l.Check == want.check && strings.Contains(l.Seen, want.seen) && strings.Contains(l.Fix, want.fix)
		})
		if !found || !errors.Is(err, want.err) {
			t.Errorf("%s: %v with %+v", address, err, lines)
		}
		if now := string(p.stores[1].Get(Election)); u.Host == "a,b" && now != was {
			t.Errorf("%s: it wrote %s on b", address, now)
		}
	}
}

// Each host keeps its login and its parameters.
func TestSingle(t *testing.T) {
	for address, want := range map[string][]host{
		"etcd://u:p@a:1,b:2/x?k=v":                  {{"a:1", "etcd://u:p@a:1/x?k=v"}, {"b:2", "etcd://u:p@b:2/x?k=v"}},
		"postgres:///db?host=a,b&port=1,2&table=t":  {{"a:1", "postgres:///db?host=a&port=1&table=t"}, {"b:2", "postgres:///db?host=b&port=2&table=t"}},
		"postgres:///db?host=a,/run/b&port=7":       {{"a:7", "postgres:///db?host=a&port=7"}, {"/run/b:7", "postgres:///db?host=%2Frun%2Fb&port=7"}},
		"postgres://u@/db?host=a,b":                 {{"a", "postgres://u@/db?host=a"}, {"b", "postgres://u@/db?host=b"}},
		"file:///var/lib/app":                       {{"", "file:///var/lib/app"}},
		"postgres://a/db?options=-c%20x%3D1,2":      {{"a", "postgres://a/db?options=-c%20x%3D1,2"}},
		"dynamodb://table?region=eu-west-1&x=a%2Cb": {{"table", "dynamodb://table?region=eu-west-1&x=a%2Cb"}},
	} {
		if got := single(address); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
