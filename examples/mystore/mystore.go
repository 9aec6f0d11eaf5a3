// Package mystore is the example of docs/backend.md: a backend for a store with
// conditional writes. Replace [Table] by your store's client library.
package mystore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/elector-go/elector/backends"
)

// A Backend keeps election records in a Table.
type Backend struct {
	table *Table
	base  *backends.Base
}

var _ backends.Backend = (*Backend)(nil)

// New returns a Backend on a table.
func New(t *Table) *Backend {
	return &Backend{table: t, base: backends.NewBase("mystore://"+t.name, classify)}
}

// classify returns advice for an error of the client library, and its kind.
func classify(err error) (advice string, kind error) {
	if errors.Is(err, ErrForbidden) {
		return "grant this user read and write on the table", backends.ErrDenied
	}
	return "check that the server runs and can be reached", backends.ErrUnavailable
}

// Load implements [backends.Backend].
func (b *Backend) Load(ctx context.Context, name string) (backends.Record, error) {
	return b.base.Load(ctx, name, func(ctx context.Context) (backends.Record, error) {
		row, err := b.table.Get(ctx, name)
		if errors.Is(err, ErrNoRow) {
			return backends.Record{}, nil
		}
		if err != nil {
			return backends.Record{}, err
		}
		r, err := backends.Decode(name, row.Value)
		r.Version = backends.Version(row.Tag)
		return r, err
	})
}

// Swap implements [backends.Backend].
func (b *Backend) Swap(ctx context.Context, name string, prev, next backends.Record) (backends.Record, error) {
	return b.base.Swap(ctx, name, func(ctx context.Context) (backends.Record, error) {
		tag, err := b.table.PutIf(ctx, name, backends.Encode(name, next), string(prev.Version))
		if errors.Is(err, ErrTag) {
			return backends.Record{}, backends.ErrConflict
		}
		next.Version = backends.Version(tag)
		return next, err
	})
}

// Describe implements [backends.Backend].
func (b *Backend) Describe() backends.Description {
	return backends.Description{Store: b.base.Store(), ReadOnly: b.base.ReadOnly()}
}

// Close implements [backends.Backend]. The table is the caller's.
func (b *Backend) Close() error { return b.base.Close(nil) }

func init() { backends.Register("mystore", open) }

// open serves mystore://NAME?readonly=true.
func open(ctx context.Context, u *url.URL) (backends.Backend, error) {
	p := backends.NewParameters(u)
	readOnly := p.Bool("readonly", false)
	if err := p.Done(); err != nil {
		return nil, err
	}
	if u.User != nil || u.Host == "" || u.Path != "" {
		return nil, fmt.Errorf("%w: write mystore://NAME", backends.ErrURL)
	}
	b := New(Dial(u.Host))
	b.base.SetReadOnly(readOnly)
	err := b.base.Open(ctx, 10*time.Second, b.table.Ping)
	if err != nil {
		return nil, err
	}
	return b, nil
}
