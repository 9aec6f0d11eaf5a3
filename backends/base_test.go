package backends_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/elector-go/elector/backends"
)

var errDriver = errors.New("from the driver")

func handle(kind error) *backends.Base {
	return backends.NewBase("store://host", func(error) (string, error) { return "do this", kind })
}

// Errors of a request have one form and keep their kind, whatever became of the
// context.
func TestHandleErrors(t *testing.T) {
	conflict := errors.Join(backends.ErrConflict)
	for what, test := range map[string]struct {
		classified, err error
		ended           error // of the context, while the request is under way
		want            string
		is              []error
		isNot           error
	}{
		"classified": {backends.ErrDenied, errDriver, nil,
			"reading election a: the store denied access: do this: from the driver", []error{backends.ErrDenied, errDriver}, nil},
		"as it is": {nil, errDriver, nil,
			"reading election a: from the driver", []error{errDriver}, nil},
		"shaped by the adapter": {backends.ErrDenied, backends.Foreign("it is empty"), nil,
			"reading election a: " + backends.Foreign("it is empty").Error(), []error{backends.ErrForeignRecord}, backends.ErrDenied},
		"definite": {backends.ErrUnavailable, conflict, context.DeadlineExceeded,
			conflict.Error(), []error{backends.ErrConflict}, backends.ErrUnavailable},
		"cancelled": {backends.ErrUnavailable, errDriver, context.Canceled,
			"reading election a: context canceled", []error{context.Canceled}, backends.ErrUnavailable},
		"late": {backends.ErrUnavailable, errDriver, context.DeadlineExceeded,
			"reading election a: the store is not available: no answer in time; do this: context deadline exceeded: from the driver",
			[]error{backends.ErrUnavailable, context.DeadlineExceeded, errDriver}, nil},
		"late, for a reason": {backends.ErrDenied, errDriver, context.DeadlineExceeded,
			"reading election a: the store denied access: do this: context deadline exceeded: from the driver",
			[]error{backends.ErrDenied, context.DeadlineExceeded, errDriver}, backends.ErrUnavailable},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := handle(test.classified)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := h.Load(ctx, "a", func(ctx context.Context) (backends.Record, error) {
				switch test.ended {
				case context.Canceled:
					cancel()
				case context.DeadlineExceeded:
					<-ctx.Done()
				}
				return backends.Record{}, test.err
			})
			if err == nil || err.Error() != test.want {
				t.Errorf("%s: the error is\n%v, want\n%s", what, err, test.want)
			}
			for _, is := range test.is {
				if !errors.Is(err, is) {
					t.Errorf("%s: %v is not %q", what, err, is)
				}
			}
			if test.isNot != nil && errors.Is(err, test.isNot) {
				t.Errorf("%s: %v is %q", what, err, test.isNot)
			}
		})
	}
}

// A Classify without advice leaves no gap in the error.
func TestHandleWithoutAdvice(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	h := backends.NewBase("", func(error) (string, error) { return "", backends.ErrUnavailable })
	err := h.Explain(ctx, "reading", errDriver)
	if want := "reading: the store is not available: no answer in time: context deadline exceeded: from the driver"; err.Error() != want {
		t.Errorf("the error is\n%v, want\n%s", err, want)
	}
}

// Close ends the call under way, which then begins no other request, and
// releases once; later calls make no request.
func TestHandleClosed(t *testing.T) {
	h := handle(backends.ErrDenied)
	request := func(ctx context.Context) error {
		_, err := backends.WithContext(ctx, h, func() (int, error) {
			t.Error("a request was made after Close")
			return 0, nil
		})
		return err
	}
	t.Run("under way", func(t *testing.T) {
		released := 0
		release := func() error { released++; return errDriver }
		err := h.Watch(t.Context(), "a", func(ctx context.Context) error {
			for range 2 {
				if err := h.Close(release); err != errDriver {
					t.Errorf("Close returned %v", err)
				}
			}
			return request(ctx)
		})
		if !errors.Is(err, backends.ErrUnavailable) || released != 1 {
			t.Errorf("the call under way returned %v, and was released %d times", err, released)
		}
	})
	t.Run("later", func(t *testing.T) {
		h.Close(nil)
		err := h.Watch(t.Context(), "a", request)
		if want := "watching election a: the store is not available: the handle is closed"; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	})
}

// A request with a name that no election has is not made.
func TestHandleNames(t *testing.T) {
	h := handle(backends.ErrDenied)
	for what, err := range map[string]error{
		"Watch":    h.Watch(t.Context(), "a/b", func(context.Context) error { panic("called") }),
		"SwapMany": h.SwapMany(t.Context(), []backends.Change{{Name: "a"}, {Name: "a/b"}}, nil)[1].Err,
		"LoadMany": h.LoadMany(t.Context(), []string{"a", "a/b"}, nil)[1].Err,
	} {
		if !errors.Is(err, backends.ErrName) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// WithContext returns with its context, counts the calls that hang, and takes more
// when they have returned.
func TestAwait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handle(backends.ErrUnavailable)
		hang, calls := make(chan struct{}), 0
		ctx, cancel := context.WithCancel(t.Context())
		for range 1024 {
			go backends.WithContext(ctx, h, func() (int, error) { <-hang; return 0, nil })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		call := func() (int, error) { calls++; return 7, errDriver }
		_, err := backends.WithContext(t.Context(), h, call)
		if want := "the store is not available: do this: 1024 earlier requests hang"; !errors.Is(err, backends.ErrUnavailable) || err.Error() != want || calls != 0 {
			t.Errorf("with 1024 calls that hang, another one returned %v, want %s", err, want)
		}
		close(hang)
		synctest.Wait()
		if n, err := backends.WithContext(t.Context(), h, call); n != 7 || err != errDriver {
			t.Errorf("got %d, %v", n, err)
		}
		if _, err := backends.WithContext(ctx, h, call); err != context.Canceled || calls != 1 {
			t.Errorf("with a context that has ended: %v, %d calls", err, calls)
		}
	})
}

// A call that has not begun when its context ends is not made.
func TestAwaitBeginsInTime(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := endsWhenAsked{ctx, cancel}
	if _, err := backends.WithContext(ended, handle(backends.ErrUnavailable), func() (int, error) {
		t.Error("a call was made after it was given up")
		return 0, nil
	}); err != context.Canceled {
		t.Errorf("got %v", err)
	}
}

// An endsWhenAsked context has not ended yet when it is asked for the first
// time, and ends right then.
type endsWhenAsked struct {
	context.Context
	end context.CancelFunc
}

func (e endsWhenAsked) Err() error {
	defer e.end()
	return e.Context.Err()
}

// Each name that LoadMany reads has an error of its own, in the form that Load
// gives it.
func TestHandleLoadMany(t *testing.T) {
	h := handle(backends.ErrUnavailable)
	read := backends.Record{Holder: "h", Version: "1"}
	all := []backends.Outcome{{Record: read}, {}, {Err: errDriver}, {Err: backends.ErrNotTried}, {Record: read, Err: backends.Foreign("it is empty")}}
	names := []string{"a", "b", "c", "d", "e"}
	for i, o := range h.LoadMany(t.Context(), names, func(context.Context) ([]backends.Outcome, error) { return all, nil }) {
		want := []string{"<nil>", "<nil>", "reading election c: the store is not available: do this: from the driver",
			backends.ErrNotTried.Error(), "reading election e: " + backends.Foreign("it is empty").Error()}[i]
		if got := fmt.Sprint(o.Err); got != want || (o.Record == read) != (i == 0) {
			t.Errorf("%s: %v and %q, want %q", names[i], o.Record, got, want)
		}
	}
	for i, o := range h.LoadMany(t.Context(), names, func(context.Context) ([]backends.Outcome, error) { return all, errDriver }) {
		if want := "reading 5 elections: the store is not available: do this: from the driver"; o.Err == nil || o.Err.Error() != want {
			t.Errorf("%s: %v, want %q", names[i], o.Err, want)
		}
	}
}
