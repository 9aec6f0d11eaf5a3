package store

import (
	"context"

	"github.com/elector-go/elector/backends"
)

// What lasts takes no place on the wire.

// Watches reports whether the backend reports changes: see backends.AsWatcher.
func (c *Client) Watches() bool {
	_, ok := backends.AsWatcher(c.backend)
	return ok
}

// Watch is that of a backends.Watcher, which the backend must be.
func (c *Client) Watch(ctx context.Context, name string, changed func(backends.Record)) error {
	return c.backend.(backends.Watcher).Watch(ctx, name, changed)
}

// ShowsPresence reports whether the backend is a backends.PresenceWatcher.
func (c *Client) ShowsPresence() bool {
	_, ok := c.backend.(backends.PresenceWatcher)
	return ok
}

// WatchPresence is that of a backends.PresenceWatcher, which the backend must be.
func (c *Client) WatchPresence(ctx context.Context, name string, held backends.Record) error {
	return c.backend.(backends.PresenceWatcher).WatchPresence(ctx, name, held)
}
