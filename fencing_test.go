package elector_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

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
	write := func(context.Context) error { ran++; return nil }
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
	var stale *elector.StaleError
	if err := f.Admit(t.Context(), "a", 5); !errors.As(err, &stale) || *stale != (elector.StaleError{Resource: "a", Token: 5, Highest: 6}) {
		t.Errorf("the error of a stale token is %v", err)
	}
}

// Writes with one token run together. A higher token ends their contexts, waits
// until they have left, and refuses them from then on.
func TestFenceWaitsForOlderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f elector.Fence
		enter := func(token elector.Token) (context.Context, func()) {
			inside, leave, err := f.Enter(t.Context(), "a", token)
			if err != nil {
				t.Fatalf("token %d: %v", token, err)
			}
			return inside, leave
		}
		one, leaveOne := enter(1)
		two, leaveTwo := enter(1)
		entered := false
		go func() {
			inside, leave := enter(2)
			entered = true
			if inside.Err() != nil {
				t.Errorf("the newer write has an ended context: %v", context.Cause(inside))
			}
			leave()
		}()
		synctest.Wait()
		for _, ctx := range []context.Context{one, two} {
			if !errors.Is(context.Cause(ctx), elector.ErrStale) {
				t.Errorf("the context of an older write has the cause %v", context.Cause(ctx))
			}
		}
		if err := f.Admit(t.Context(), "a", 1); !errors.Is(err, elector.ErrStale) {
			t.Errorf("an older token, while a newer one waits: %v", err)
		}
		if err := f.Admit(t.Context(), "other", 1); err != nil {
			t.Errorf("another resource waits too: %v", err)
		}
		leaveOne()
		leaveOne()
		synctest.Wait()
		if entered {
			t.Error("a newer write has entered while an older one was under way")
		}
		leaveTwo()
		synctest.Wait()
		if !entered {
			t.Error("a newer write has not entered although all older ones have left")
		}
	})
}

// A token counts from when it was first seen, even if its write never began.
func TestFenceRemembersWhoGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f elector.Fence
		_, leave, err := f.Enter(t.Context(), "a", 1)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Admit(ctx, "a", 2); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a write that waited too long: %v", err)
		}
		leave()
		if err := f.Admit(t.Context(), "a", 1); !errors.Is(err, elector.ErrStale) {
			t.Errorf("an older token after a newer one was seen: %v", err)
		}
	})
}

// A shelf is a Keeper.
type shelf struct {
	kept  map[string]elector.Token
	err   error
	calls int
}

func (s *shelf) Raise(_ context.Context, resource string, token elector.Token) (elector.Token, error) {
	s.calls++
	if s.err != nil {
		return 0, s.err
	}
	s.kept[resource] = max(s.kept[resource], token)
	return s.kept[resource], nil
}

// The Keeper has each token before its first write, once, and a new Fence forgets
// nothing.
func TestFenceKeeper(t *testing.T) {
	s := &shelf{kept: map[string]elector.Token{}}
	f := &elector.Fence{Keeper: s}
	for range 2 {
		err := f.Do(t.Context(), "a", 5, func(context.Context) error {
			if s.kept["a"] != 5 {
				t.Errorf("a write runs before its token was kept: %v", s.kept)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if s.calls != 1 {
		t.Errorf("the Keeper was called %d times for one token", s.calls)
	}
	f = &elector.Fence{Keeper: s}
	if err := f.Admit(t.Context(), "a", 4); !errors.Is(err, elector.ErrStale) {
		t.Errorf("an older token after a restart: %v", err)
	}
	s.err = errors.New("the disk is full")
	if err := f.Admit(t.Context(), "a", 6); !errors.Is(err, s.err) {
		t.Errorf("a token that could not be kept: %v", err)
	}
}

func TestFenceMaxAhead(t *testing.T) {
	f := &elector.Fence{MaxAhead: time.Hour}
	now := elector.Token(time.Now().UnixMicro())
	if err := f.Admit(t.Context(), "a", now+elector.Token(2*time.Hour/time.Microsecond)); !errors.Is(err, elector.ErrInvalid) {
		t.Errorf("a token of two hours from now: %v", err)
	}
	if err := f.Admit(t.Context(), "a", now); err != nil {
		t.Errorf("a token of now, after one that was refused: %v", err)
	}
}
