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
	for name, test := range map[string]func(*testing.T){
		"lower tokens are refused":                fenceRefuses,
		"equal tokens enter together":             fenceEqual,
		"older writes leave first":                fenceOlder,
		"a token counts while its write waits":    fenceWaiting,
		"a token counts although its write fails": fenceGaveUp,
		"a write panics":                          fencePanic,
		"the context has ended":                   fenceEnded,
		"kept before the write":                   fenceKeeper,
		"the Keeper fails":                        fenceKeeperFails,
		"the Keeper hangs with an older token":    fenceKeeperHangs,
		"too far ahead":                           fenceAhead,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
	}
}

func fenceRefuses(t *testing.T) {
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
	failed := errors.New("the disk is full")
	if err := f.Do(t.Context(), "a", 6, func(context.Context) error { return failed }); err != failed {
		t.Errorf("Do returns %v for a write that failed with %v", err, failed)
	}
}

// enter enters, and fails the test if it cannot.
func enter(t *testing.T, f *elector.Fence, token elector.Token) (inside context.Context, leave func()) {
	t.Helper()
	inside, leave, err := f.Enter(t.Context(), "a", token)
	if err != nil {
		t.Fatalf("token %d: %v", token, err)
	}
	return inside, leave
}

// entering admits a token in the background.
func entering(t *testing.T, f *elector.Fence, token elector.Token) <-chan error {
	done := begin(func() error { return f.Admit(t.Context(), "a", token) })
	synctest.Wait()
	return done
}

func fenceEqual(t *testing.T) {
	var f elector.Fence
	_, leave := enter(t, &f, 1)
	defer leave()
	if err := wait(t, entering(t, &f, 1), "a second write with the same token has entered"); err != nil {
		t.Error(err)
	}
}

func fenceOlder(t *testing.T) {
	var f elector.Fence
	one, leaveOne := enter(t, &f, 1)
	two, leaveTwo := enter(t, &f, 1)
	newer := begin(func() error {
		return f.Do(t.Context(), "a", 2, func(inside context.Context) error { return context.Cause(inside) })
	})
	synctest.Wait()
	for _, ctx := range []context.Context{one, two} {
		if !errors.Is(context.Cause(ctx), elector.ErrStale) {
			t.Errorf("the context of an older write has the cause %v", context.Cause(ctx))
		}
	}
	if err := f.Admit(t.Context(), "other", 1); err != nil {
		t.Errorf("another resource: %v", err)
	}
	leaveOne()
	leaveOne()
	synctest.Wait()
	isNot(t, newer, "a newer write has entered while an older one was under way")
	leaveTwo()
	if err := wait(t, newer, "the newer write has entered once the older ones have left"); err != nil {
		t.Errorf("the newer write: %v", err)
	}
}

func fenceWaiting(t *testing.T) {
	var f elector.Fence
	_, leave := enter(t, &f, 1)
	two := entering(t, &f, 2)
	isNot(t, two, "a newer write has entered while an older one was under way")
	if err := wait(t, entering(t, &f, 1), "an older token is refused while a newer one waits"); !errors.Is(err, elector.ErrStale) {
		t.Errorf("an older token, while a newer one waits: %v", err)
	}
	three := entering(t, &f, 3)
	if err := wait(t, two, "a write that waits is refused when a newer one comes"); !errors.Is(err, elector.ErrStale) {
		t.Errorf("a write that waits, when a newer one comes: %v", err)
	}
	leave()
	if err := wait(t, three, "the newest write has entered"); err != nil {
		t.Error(err)
	}
}

func fenceGaveUp(t *testing.T) {
	var f elector.Fence
	_, leave := enter(t, &f, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := f.Admit(ctx, "a", 2); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a write that waited too long: %v", err)
	}
	leave()
	if err := f.Admit(t.Context(), "a", 1); !errors.Is(err, elector.ErrStale) {
		t.Errorf("an older token after a newer one was seen: %v", err)
	}
}

func fencePanic(t *testing.T) {
	var f elector.Fence
	func() {
		defer func() { recover() }()
		f.Do(t.Context(), "a", 1, func(context.Context) error { panic("a bug") })
	}()
	if err := wait(t, entering(t, &f, 2), "a newer write has entered after a panic"); err != nil {
		t.Error(err)
	}
}

func fenceEnded(t *testing.T) {
	var f elector.Fence
	gone := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	if err := f.Admit(ctx, "a", 1); err != gone {
		t.Errorf("a write whose context has ended: %v", err)
	}
	inside, leave := enter(t, &f, 2)
	leave()
	if inside.Err() == nil {
		t.Error("the context goes on after leave")
	}
}

// A shelf is a Keeper.
type shelf struct {
	kept  map[string]elector.Token
	calls int
	first func(context.Context) error // is called before the token is kept
}

func (s *shelf) Raise(ctx context.Context, resource string, token elector.Token) (elector.Token, error) {
	s.calls++
	if s.first != nil {
		if err := s.first(ctx); err != nil {
			return 0, err
		}
	}
	s.kept[resource] = max(s.kept[resource], token)
	return s.kept[resource], nil
}

// A Keeper is called once for each token, before its first write, and a new Fence
// forgets nothing.
func fenceKeeper(t *testing.T) {
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
	if err := f.Admit(t.Context(), "a", 5); err != nil {
		t.Errorf("the highest token after a restart: %v", err)
	}
}

func fenceKeeperFails(t *testing.T) {
	s := &shelf{kept: map[string]elector.Token{}}
	f := &elector.Fence{Keeper: s}
	full := errors.New("the disk is full")
	s.first = func(context.Context) error { return full }
	if err := f.Admit(t.Context(), "a", 5); !errors.Is(err, full) {
		t.Errorf("a token that could not be kept: %v", err)
	}
	s.first = func(context.Context) error { panic("a bug") }
	func() {
		defer func() { recover() }()
		f.Admit(t.Context(), "a", 5)
	}()
	s.first = nil
	if err := wait(t, entering(t, f, 5), "the same token, once it can be kept"); err != nil || s.kept["a"] != 5 {
		t.Errorf("the same token, once it can be kept: %v, kept %v", err, s.kept)
	}
}

// A Keeper that hangs for an old leader does not hang for the next one.
func fenceKeeperHangs(t *testing.T) {
	s := &shelf{kept: map[string]elector.Token{}}
	f := &elector.Fence{Keeper: s}
	s.first = func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	one, also := entering(t, f, 1), entering(t, f, 1)
	isNot(t, also, "a write has entered while its token was being kept")
	s.first = nil
	if err := wait(t, entering(t, f, 2), "a newer token is kept"); err != nil || s.calls != 2 {
		t.Errorf("a newer token: %v, after %d calls of the Keeper", err, s.calls)
	}
	for _, done := range []<-chan error{one, also} {
		if err := wait(t, done, "the older write is refused"); !errors.Is(err, elector.ErrStale) {
			t.Errorf("an older write that waited for the Keeper: %v", err)
		}
	}
}

func fenceAhead(t *testing.T) {
	f := &elector.Fence{MaxAhead: time.Hour}
	now := elector.Token(time.Now().UnixMicro())
	if err := f.Admit(t.Context(), "a", now+elector.Token(2*time.Hour/time.Microsecond)); !errors.Is(err, elector.ErrInvalid) {
		t.Errorf("a token of two hours from now: %v", err)
	}
	if err := f.Admit(t.Context(), "a", now+elector.Token(time.Hour/time.Microsecond)); err != nil {
		t.Errorf("a token of an hour from now, after one that was refused: %v", err)
	}
}
