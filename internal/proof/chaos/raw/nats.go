package raw

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/backends/nats"
	"github.com/elector-go/elector/internal/proof/stores"
	natsgo "github.com/nats-io/nats.go"
)

// A natsRecords has two keys for each record.
type natsRecords struct {
	JSON
	stores.NATSRecords
}

func openNATS(ctx context.Context, u *url.URL) (Records, func() error, error) {
	query := u.Query()
	query.Set("create", "true")
	with := *u
	with.RawQuery = query.Encode()
	b, err := backends.Open(ctx, with.String())
	if err != nil {
		return nil, nil, err
	}
	if err := b.Close(); err != nil {
		return nil, nil, err
	}
	options := []natsgo.Option{natsgo.MaxReconnects(-1)}
	if password, ok := u.User.Password(); ok {
		options = append(options, natsgo.UserInfo(u.User.Username(), password))
	}
	nc, err := natsgo.Connect("nats://"+u.Host, options...)
	if err != nil {
		return nil, nil, err
	}
	prefix := cmp.Or(u.Query().Get("prefix"), nats.DefaultPrefix)
	r := natsRecords{NATSRecords: stores.NewNATSRecords(nc, strings.Trim(u.Path, "/"), prefix)}
	return r, func() error { nc.Close(); return nil }, nil
}
