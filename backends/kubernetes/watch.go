package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// Watch implements [backends.Watcher].
func (b *Backend) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return b.base.Watch(ctx, name, func(ctx context.Context) error { return b.watch(ctx, name, changed) })
}

// An event is one line of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// watch asks for changes and then reads, because only the answer to a read is the
// newest state: a watch begins with what the API server has in its cache. What was
// read last may be too old for a watch to begin there.
func (b *Backend) watch(ctx context.Context, name string, changed func(backends.Record)) error {
	object := objectName(name)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(patience, cancel) // what follows has no deadline of its own
	defer late.Stop()
	query := url.Values{"watch": {"1"}, "fieldSelector": {"metadata.name=" + object}, "allowWatchBookmarks": {"true"}}
	answer, err := b.send(ctx, b.watches, http.MethodGet, b.path("")+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	r, since, err := b.load(ctx, name)
	if err != nil {
		return err
	}
	if !late.Stop() {
		return context.Canceled
	}
	changed(r)
	bounded := &io.LimitedReader{R: answer.Body}
	for events := json.NewDecoder(bounded); ; {
		var e event
		bounded.N = maxAnswer
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			return errWatchEnded
		} else if err != nil {
			return fmt.Errorf("%w: %w", errWatchEnded, err)
		}
		r, news, err := b.follow(name, e, since)
		if err != nil {
			return err
		}
		if news {
			since = ""
			changed(r)
		}
	}
}

// follow returns the record after an event, and whether it is news after the
// resource version since.
func (b *Backend) follow(name string, e event, since string) (r backends.Record, news bool, err error) {
	if e.Type == "ERROR" {
		refusal := &status{}
		if json.Unmarshal(e.Object, refusal) != nil || refusal.Code == 0 {
			return r, false, errWatchEnded
		}
		return r, false, fmt.Errorf("%w: %w", errWatchEnded, refusal)
	}
	var l lease
	if json.Unmarshal(e.Object, &l) != nil {
		return r, false, errNoLease
	}
	newer := compare(l.Metadata.ResourceVersion, since)
	switch e.Type {
	case "ADDED", "MODIFIED":
		if newer > 0 {
			r, err = b.read(name, l)
			return r, err == nil, err
		}
	case "DELETED": // older API servers give it the version of the last change
		return r, newer >= 0, nil
	}
	return r, false, nil // a bookmark, or what the read has shown
}

// compare orders resource versions, which are revisions of etcd in decimal. One
// that is not is newer than all others.
func compare(a, b string) int {
	if strings.Trim(a, "0123456789") != "" || strings.Trim(b, "0123456789") != "" {
		return 1
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}
