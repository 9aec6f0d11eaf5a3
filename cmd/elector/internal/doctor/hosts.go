package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// A host is one of several in a URL.
type host struct{ name, url string }

// An opened host is one that can be read by itself.
type opened struct {
	host
	b backends.Backend
}

// oneStore reports whether all hosts of the URL lead to one store: the record that is
// written through one of them is seen through each other one. Otherwise candidates that
// reach different hosts would lead at the same time. Only that one host is written.
func (d *doctor) oneStore(ctx context.Context) bool {
	all := single(d.URL)
	if len(all) < 2 {
		return true
	}
	var hosts []opened
	defer func() {
		for _, h := range hosts {
			h.b.Close()
		}
	}()
	for _, h := range all {
		b, err := openHost(ctx, h, backends.OpenReadOnly)
		for try := 0; errors.Is(err, backends.ErrMisconfigured) && try < 8; try++ { // it may be behind what was just created
			pause(ctx, 250*time.Millisecond)
			b, err = openHost(ctx, h, backends.OpenReadOnly)
		}
		switch {
		case errors.Is(err, backends.ErrUnavailable):
			d.line("host "+h.name, err.Error(), "start it, or take it out of the URL", nil)
		case err != nil:
			d.line("host "+h.name, "it is another store than the other hosts, or is set up differently: "+err.Error(),
				"set it up like the other hosts, or take it out of the URL: a candidate that reaches it does not reach their store", err)
		default:
			hosts = append(hosts, opened{h, b})
		}
	}
	if len(hosts) < 2 {
		return true
	}
	base, end := d.mark(ctx, hosts)
	same, err := d.compare(ctx, base, hosts)
	if err := errors.Join(err, end()); err != nil {
		d.doubts("one store", err)
	}
	return same
}

func openHost(ctx context.Context, h host, open func(context.Context, string) (backends.Backend, error)) (backends.Backend, error) {
	ctx, cancel := context.WithTimeout(ctx, patience/3)
	defer cancel()
	return open(ctx, h.url)
}

// mark writes the record through the first host that takes writes, and returns that host;
// with ReadOnly, or if it cannot, the first host alone. end leaves the election vacant.
// Errors are for examine, which writes too.
func (d *doctor) mark(ctx context.Context, hosts []opened) (base opened, end func() error) {
	for _, h := range hosts {
		if d.ReadOnly {
			break
		}
		b, err := openHost(ctx, h.host, backends.Open)
		if err != nil {
			continue
		}
		p := newPatient(d, b, b)
		if p.record, err = p.load(ctx, b); err == nil {
			err = p.acquire(ctx)
		}
		return opened{h.host, b}, func() error {
			defer b.Close()
			if err != nil {
				return nil
			}
			return p.vacate(ctx)
		}
	}
	return hosts[0], func() error { return nil }
}

// compare looks at whether all hosts show the record that the base does.
func (d *doctor) compare(ctx context.Context, base opened, hosts []opened) (bool, error) {
	var names []string
	for _, h := range hosts {
		names = append(names, h.name)
		same, err := d.shows(ctx, base.b, h.b)
		if err != nil {
			return true, err
		}
		if same {
			continue
		}
		const fix = "name only hosts of one store in the URL: candidates that reach different ones lead at the same time"
		seen := fmt.Sprintf("%s and %s are two stores: each shows a record that the other has not", base.name, h.name)
		switch {
		case d.ReadOnly:
			d.line("one store", seen+", or one is a standby that is behind", fix, backends.ErrMisconfigured)
		case d.standby(ctx, h.host):
			d.line("one store", fmt.Sprintf("%s takes no writes and does not show the record that %s has", h.name, base.name),
				"see how far behind it is, and whether it is a standby of this primary: a failover to it would lose acknowledged writes", nil)
			continue
		default:
			d.line("one store", seen, fix, backends.ErrMisconfigured)
		}
		return false, nil
	}
	now, err := base.b.Load(ctx, Election)
	switch seen := strings.Join(names, ", "); {
	case err != nil:
		return true, err
	case now.Exists():
		d.line("one store", seen+" show the record that "+base.name+" has", "", nil)
	default:
		d.line("one store", "not known of "+seen+": none has the record of "+Election+", and --read-only writes none", "", nil)
	}
	return true, nil
}

// standby reports whether a host refuses to serve a candidate because it takes no writes.
func (d *doctor) standby(ctx context.Context, h host) bool {
	b, err := openHost(ctx, h, backends.Open)
	if err == nil {
		b.Close()
	}
	return errors.Is(err, backends.ErrReadOnly)
}

// shows reports whether the other host shows what the base does. It waits some seconds for
// a standby. A base that another doctor changes all the time is no evidence.
func (d *doctor) shows(ctx context.Context, base, other backends.Backend) (same bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	stood := false
	for range 20 {
		before, err := base.Load(ctx, Election)
		if err != nil {
			return false, err
		}
		there, err := other.Load(ctx, Election)
		if err != nil {
			return false, err
		}
		after, err := base.Load(ctx, Election)
		if err != nil {
			return false, err
		}
		if there.Attempt == before.Attempt || there.Attempt == after.Attempt {
			return true, nil
		}
		stood = before.Attempt == after.Attempt
		pause(ctx, 250*time.Millisecond)
	}
	if !stood {
		err = errors.New("other processes write the election " + Election + " all the time; run one doctor at a time")
	}
	return false, err
}

// single returns the URL with each of its hosts alone. Of PostgreSQL's they can stand in
// a parameter.
func single(address string) (all []host) {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	q := u.Query()
	names, ports := strings.Split(u.Host, ","), strings.Split(q.Get("port"), ",")
	inQuery := u.Host == "" && strings.HasPrefix(u.Scheme, "postgres") && q.Has("host")
	if inQuery {
		names = strings.Split(q.Get("host"), ",")
	}
	for i, name := range names {
		v := *u
		if v.Host = name; inQuery {
			v.Host = ""
			q.Set("host", name)
			if port := ports[min(i, len(ports)-1)]; port != "" {
				q.Set("port", port)
				name += ":" + port
			}
			v.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
		}
		all = append(all, host{name, v.String()})
	}
	return all
}
