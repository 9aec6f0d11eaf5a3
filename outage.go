package elector

import (
	"context"
	"log/slog"
	"sync"
)

// An outage is one thing that fails at present in elections of this process. What a slow
// store causes is logged once for the store: a line for the first election that fails,
// one with their number after a renewal interval, in which all have tried, and one when
// all work again.
type outage struct {
	failing  map[*Elector]bool // whose latest try has failed
	most     int               // elections that failed at the same time
	failures int
	logged   map[string]bool // reasons, see reasonOf
	several  bool            // the line with the number is logged, or due
	worked   bool            // in an election that had failed
}

// An outageKey names an outage: what fails; and the backend on which it does, or the
// Elector if it concerns that alone.
type outageKey struct {
	of   any
	what string
}

// outages are those of this process.
var outages = struct {
	sync.Mutex
	by map[outageKey]*outage
}{by: map[outageKey]*outage{}}

// fails counts a failure, and logs it if its reason is new: as an error if it passes only
// when somebody changes something.
func (k outageKey) fails(e *Elector, f *failure, args []any) {
	level := slog.LevelWarn
	if f.permanent() {
		level = slog.LevelError
	}
	fresh, o, several := k.add(e, reasonOf(f.err, e.name))
	if fresh {
		e.log.Log(context.Background(), level, "elector: "+k.what+" fails and is tried again", append(args, "error", f.err)...)
	}
	if several {
		e.clock.AfterFunc(e.o.RenewEvery, func() {
			if n := k.elections(o); n > 1 {
				e.storeLog.Log(context.Background(), level, "elector: "+k.what+" fails and is tried again", "elections", n, "error", f.err)
			}
		})
	}
}

// add reports whether the reason is new, and whether several elections fail for the
// first time.
func (k outageKey) add(e *Elector, reason string) (fresh bool, o *outage, several bool) {
	outages.Lock()
	defer outages.Unlock()
	o = outages.by[k]
	if o == nil {
		o = &outage{failing: map[*Elector]bool{}, logged: map[string]bool{}}
		outages.by[k] = o
	}
	o.failing[e] = true
	o.failures++
	o.most = max(o.most, len(o.failing))
	fresh, several = !o.logged[reason], len(o.failing) > 1 && !o.several
	o.logged[reason] = true
	o.several = o.several || several
	return fresh, o, several
}

// elections returns how many fail, 0 if the outage is over.
func (k outageKey) elections(o *outage) int {
	outages.Lock()
	defer outages.Unlock()
	if outages.by[k] != o {
		return 0
	}
	return len(o.failing)
}

// ends takes an election out of the outage, because a try has worked after so many
// failures, or because there are no more tries. It logs the end of the outage, unless no
// try has worked.
func (k outageKey) ends(e *Elector, worked bool, failures int, args []any) {
	o, was := k.remove(e, worked)
	switch {
	case !was && worked: // the tries had ended
		e.log.Info("elector: "+k.what+" works again", append(args, "failures", failures)...)
	case o == nil || !o.worked:
	case o.most > 1:
		e.storeLog.Info("elector: "+k.what+" works again", "elections", o.most, "failures", o.failures)
	default:
		e.log.Info("elector: "+k.what+" works again", append(args, "failures", o.failures)...)
	}
}

// remove returns the outage if it is over, and whether the election was part of it.
func (k outageKey) remove(e *Elector, worked bool) (over *outage, was bool) {
	outages.Lock()
	defer outages.Unlock()
	o := outages.by[k]
	if o == nil || !o.failing[e] {
		return nil, false
	}
	delete(o.failing, e)
	o.worked = o.worked || worked
	if len(o.failing) > 0 {
		return nil, true
	}
	delete(outages.by, k)
	return o, true
}
