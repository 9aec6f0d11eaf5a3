package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/elector-go/elector/backends"
)

// A place in line is in no table. The candidate that takes it announces it to all that
// listen, by a notification, and they remember it. The server brings notifications to
// all in one order, so that all who listen remember the same. A process that comes
// later knows of no place and takes it anew, and the others follow; so does one whose
// connection broke. The place of a process that is gone lasts until the next one.

// maxPlaces is how many places a handle has at most. It bounds what a process
// announces that waits for many elections.
const maxPlaces = 100

// A move is the announcement of a place.
type move struct{ name, prev, next string }

// payload is what is announced. Tables of one name in two schemas share the channel.
func (b *Backend) payload(m move) string {
	text, err := json.Marshal([]string{b.table.quoted(), m.name, m.prev, m.next})
	if err != nil {
		panic(err) // strings always marshal
	}
	return string(text)
}

// moveOf returns the announcement in a payload. No name of an election looks like
// one. One for another table moves nothing.
func (b *Backend) moveOf(payload string) (m move, ok bool) {
	var f []string
	if payload == "" || payload[0] != '[' {
		return move{}, false
	}
	if json.Unmarshal([]byte(payload), &f) != nil || len(f) != 4 || f[0] != b.table.quoted() {
		return move{}, true
	}
	return move{f[1], f[2], f[3]}, true
}

// moves follows an announcement. Of two that came from the same place the later one
// counts, for all. The caller holds the Backend's mutex.
func (w *watch) moves(m move) {
	if m.next == "" && w.place != m.prev {
		return
	}
	w.place = m.next
	if w.place != w.ours {
		w.ours = ""
	}
	signal(w.moved)
}

func (b *Backend) placeOf(w *watch) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return w.place
}

// SwapPlace implements [backends.Liner]. It compares with what this handle has heard.
// A handle that watches the election can take the place, any can remove it.
func (b *Backend) SwapPlace(ctx context.Context, name, prev, next string) error {
	return b.handle.SwapPlace(ctx, name, func(ctx context.Context) error {
		allowed, err := b.mayMove(move{name, prev, next})
		if err != nil || !allowed {
			return err
		}
		_, err = b.queryRow(ctx, "select pg_notify($1, $2)::text, set_config('synchronous_commit', 'off', true)",
			[]any{b.table.channel(), b.payload(move{name, prev, next})}, nil, nil)
		return err
	})
}

// mayMove compares with the present place, and counts a new one. It returns false,
// and no error, if the handle has as many as it may: then the place is lost.
func (b *Backend) mayMove(m move) (bool, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	var here *watch
	ours := 0
	if b.listener != nil {
		for w := range b.listener.all {
			if w.name == m.name {
				here = w
			} else if w.ours != "" {
				ours++
			}
		}
	}
	switch {
	case here != nil && here.place != m.prev:
		return false, backends.ErrConflict
	case m.next == "":
		return true, nil
	case here == nil:
		return false, fmt.Errorf("%w: the election is not watched", backends.ErrUnavailable)
	case ours >= maxPlaces:
		return false, nil
	}
	here.ours = m.next
	return true, nil
}
