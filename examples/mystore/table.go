package mystore

import (
	"context"
	"errors"
	"strconv"
	"sync"
)

// A Table stands for your store and its client library: rows that are replaced
// only if their tag is the expected one. All users of a name share its rows.
type Table struct {
	name string

	mutex  sync.Mutex
	rows   map[string]Row
	writes int

	loseRequests, loseAnswers bool
}

// A Row is a value and its tag. No two states of a row have the same tag, not even
// after the row was deleted and created anew.
type Row struct {
	Value []byte
	Tag   string
}

// The errors of the client library.
var (
	ErrNoRow     = errors.New("no such row")
	ErrTag       = errors.New("the row has another tag")
	ErrForbidden = errors.New("forbidden")
	ErrLost      = errors.New("connection lost")
)

var tables sync.Map

// Dial returns the table of a name.
func Dial(name string) *Table {
	t, _ := tables.LoadOrStore(name, &Table{name: name, rows: map[string]Row{}})
	return t.(*Table)
}

// Lose makes requests fail from now on, before they reach the table or after.
func (t *Table) Lose(requests, answers bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.loseRequests, t.loseAnswers = requests, answers
}

// Ping makes a request that changes nothing.
func (t *Table) Ping(ctx context.Context) error { return ctx.Err() }

// Get returns a row.
func (t *Table) Get(ctx context.Context, key string) (Row, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.loseRequests || t.loseAnswers {
		return Row{}, ErrLost
	}
	row, ok := t.rows[key]
	if !ok {
		return Row{}, ErrNoRow
	}
	return row, ctx.Err()
}

// PutIf replaces a row that has this tag, or creates it if the tag is empty, and
// returns the new tag.
func (t *Table) PutIf(ctx context.Context, key string, value []byte, tag string) (string, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if t.loseRequests {
		return "", ErrLost
	}
	if t.rows[key].Tag != tag {
		return "", ErrTag
	}
	tag = t.put(key, value)
	if t.loseAnswers {
		return "", ErrLost
	}
	return tag, nil
}

// Put replaces a row, whatever its tag.
func (t *Table) Put(key string, value []byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.put(key, value)
}

func (t *Table) put(key string, value []byte) (tag string) {
	t.writes++
	tag = strconv.Itoa(t.writes)
	t.rows[key] = Row{append([]byte{}, value...), tag}
	return tag
}

// Delete removes a row.
func (t *Table) Delete(key string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.rows, key)
}
