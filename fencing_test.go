package elector_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/elector-go/elector"
)

func TestTokenText(t *testing.T) {
	for _, token := range []elector.Token{1, 1795184054880793, elector.MaxToken} {
		if back, err := elector.ParseToken(token.String()); err != nil || back != token {
			t.Errorf("ParseToken(%q) is %d, %v", token, back, err)
		}
		text, err := json.Marshal(map[string]elector.Token{"token": token})
		var read map[string]elector.Token
		if err != nil || json.Unmarshal(text, &read) != nil || read["token"] != token {
			t.Errorf("token %d does not survive JSON: %s", token, text)
		}
		value, err := token.Value()
		var scanned elector.Token
		if err != nil || scanned.Scan(value) != nil || scanned != token {
			t.Errorf("token %d does not survive SQL: %v", token, value)
		}
	}
	for _, bad := range []string{"", "0", "-1", "+1", "01", " 1", "1 ", "1e3", "9007199254740992", "18446744073709551616", "x"} {
		if token, err := elector.ParseToken(bad); !errors.Is(err, elector.ErrInvalid) {
			t.Errorf("ParseToken(%q) is %d, %v; want ErrInvalid", bad, token, err)
		}
	}
	var token elector.Token
	for _, bad := range []any{nil, int64(0), int64(-5), int64(1) << 53, 1.5, "x", []byte("0")} {
		if err := token.Scan(bad); !errors.Is(err, elector.ErrInvalid) || token != 0 {
			t.Errorf("Scan(%v) is %v with token %d; want ErrInvalid", bad, err, token)
		}
	}
}

func TestFence(t *testing.T) {
	var f elector.Fence
	ran := 0
	write := func() error { ran++; return nil }
	for i, c := range []struct {
		resource string
		token    elector.Token
		want     error
	}{
		{"a", 5, nil}, {"a", 5, nil}, {"a", 4, elector.ErrStale}, {"b", 4, nil}, {"a", 6, nil}, {"a", 5, elector.ErrStale},
		{"a", 0, elector.ErrInvalid}, {"a", elector.MaxToken + 1, elector.ErrInvalid},
	} {
		before := ran
		err := f.Do(t.Context(), c.resource, c.token, write)
		if !errors.Is(err, c.want) || (ran > before) != (c.want == nil) {
			t.Errorf("write %d to %q with token %d: %v, ran %v; want %v", i, c.resource, c.token, err, ran > before, c.want)
		}
	}
}

// A write with a higher token must not come between an older one's check and
// its effect.
func TestFenceOneAtATime(t *testing.T) {
	var f elector.Fence
	inside, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- f.Do(context.Background(), "a", 1, func() error { close(inside); <-goOn; return nil })
	}()
	<-inside
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Do(ended, "a", 2, func() error { t.Error("two writes at a time"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a turn with an ended context: %v", err)
	}
	if err := f.Admit("other", 1); err != nil {
		t.Errorf("another resource waits too: %v", err)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := f.Admit("a", 1); err != nil {
		t.Errorf("a token that was refused for want of time counts as seen: %v", err)
	}
}
