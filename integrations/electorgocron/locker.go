package electorgocron

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// A Locker is a gocron.Locker: the process that locks a job first runs it. NewLocker
// makes it. Many goroutines may call its methods.
type Locker struct {
	backend backends.Backend
	options elector.Options
	minHold time.Duration

	life context.Context // ends with Close
	end  context.CancelFunc

	mutex  sync.Mutex
	closed bool
	jobs   map[string]*job // by name
}

// NewLocker returns a gocron.Locker with an election on the backend for each job. The
// options may be nil; they are those of every election. minHold is the minimum hold, 0
// for DefaultMinHold: the lock of a job is held from the call of Lock until the job has
// returned, and for at least so long. It is at most 0.4 of the time that a lease is
// valid, TTL*(1-ClockDrift). NewLocker does no I/O. It returns ErrInvalid.
//
// Choose a minimum hold below the time between two ticks, and above what the clocks
// and timers of two processes differ. It does not keep a process from its own next
// tick: that runs under the same lease.
//
// The name of an election is the name of its job, with an underscore and the byte in
// hexadecimal for each byte that names of elections cannot have: "nightly_20report".
// Give each job a name, with gocron.WithName. gocron's default is the name of the
// function, which for a function literal changes with the code around it; two versions
// of the program would then lock different elections.
func NewLocker(b backends.Backend, o *elector.Options, minHold time.Duration) (*Locker, error) {
	l := &Locker{backend: b, minHold: minHold, jobs: map[string]*job{}}
	if o != nil {
		l.options = *o
	}
	if l.minHold == 0 {
		l.minHold = DefaultMinHold
	}
	if _, err := elector.New(b, "job", &l.options); err != nil { // checks the options
		return nil, err
	}
	ttl := cmp.Or(l.options.TTL, max(15*time.Second, b.Describe().MinTTL))
	hold := ttl - time.Duration(float64(ttl)*cmp.Or(l.options.ClockDrift, 0.1))
	if most := hold / 5 * 2; l.minHold < 0 || l.minHold > most { // as in Elector.lead
		return nil, fmt.Errorf("electorgocron: %w: the minimum hold is %v, not between 0 and %v, which is 0.4 of the time that a lease is valid, TTL*(1-ClockDrift); raise Options.TTL", elector.ErrInvalid, l.minHold, most)
	}
	l.life, l.end = context.WithCancel(context.Background())
	return l, nil
}

// A job is an election, and this process's part in it.
type job struct {
	*Locker
	name    string
	elector *elector.Elector

	turn     chan struct{}  // full while a goroutine owns what follows, also across requests
	lease    *elector.Lease // the latest
	running  bool
	until    time.Time // end of the minimum hold
	timer    *time.Timer
	watching bool
}

// Lock locks the job of that name, or returns why it cannot: ErrHeld if another
// process holds it, ErrBusy if the job still runs in this one, ErrName, ErrClosed, or
// why the store did not answer. It blocks for at most a few times
// Options.RequestTimeout; if the last lock is still to be released, for
// Options.ReleaseTimeout before that.
//
// The lock of a process that crashed is free TTL*(1+ClockDrift) after another process
// saw its last renewal; a process that Lock refused watches for that.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	j, err := l.job(key)
	if err != nil {
		return nil, err
	}
	select {
	case j.turn <- struct{}{}:
		defer j.done()
	case <-ctx.Done():
		return nil, fmt.Errorf("electorgocron: job %q: %w", key, context.Cause(ctx))
	}
	if err := j.acquire(ctx); err != nil {
		if errors.Is(err, elector.ErrHeld) {
			j.watch()
		}
		return nil, err
	}
	j.running, j.until = true, time.Now().Add(l.minHold)
	return lock{j}, nil
}

func (j *job) begin() { j.turn <- struct{}{} }
func (j *job) done()  { <-j.turn }

// job returns the job of that name, which it makes at the first call.
func (l *Locker) job(name string) (*job, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.closed {
		return nil, fmt.Errorf("electorgocron: job %q: %w", name, elector.ErrClosed)
	}
	if j := l.jobs[name]; j != nil {
		return j, nil
	}
	e, err := election(name)
	if err != nil {
		return nil, err
	}
	j := &job{Locker: l, name: name, turn: make(chan struct{}, 1)}
	if j.elector, err = elector.New(l.backend, e, &l.options); err != nil {
		return nil, err
	}
	l.jobs[name] = j
	return j, nil
}

// acquire makes sure that there is a lease that is valid for the minimum hold: the one
// that is still held after the last run, or a new one.
func (j *job) acquire(ctx context.Context) (err error) {
	if j.running {
		return fmt.Errorf("electorgocron: job %q: %w", j.name, elector.ErrBusy)
	}
	if j.lease == nil || j.lease.Check() != nil {
		if j.lease, err = j.elector.TryCampaign(ctx); err != nil {
			j.lease = nil
			return err
		}
	}
	if err = j.lease.CheckFor(j.minHold); err != nil {
		j.releaseAfter(time.Until(j.until))
	}
	return err
}

// watch watches the election in the background until it is vacant, so that the next
// call of Lock may take it over if its holder has crashed.
func (j *job) watch() {
	if j.watching {
		return
	}
	j.watching = true
	go func() {
		for leader, err := range j.elector.Observe(j.life) {
			if err != nil || leader.Vacant() {
				break
			}
		}
		j.begin()
		defer j.done()
		j.watching = false
	}()
}

// releaseAfter releases the lock after d, unless another run has begun before.
func (j *job) releaseAfter(d time.Duration) {
	if j.timer != nil {
		j.timer.Stop()
	}
	j.timer = time.AfterFunc(d, func() {
		j.begin()
		defer j.done()
		if !j.running && !time.Now().Before(j.until) {
			j.release()
		}
	})
}

// release tells the store that the job is free. If the store cannot be told, the
// Elector logs that, and the lock is free when the record has expired.
func (j *job) release() error {
	if j.lease == nil || j.lease.Check() != nil {
		return nil
	}
	return j.lease.Release(context.Background())
}

// A lock is a job while it runs.
type lock struct{ *job }

// Unlock ends the lock when the minimum hold is over: now, and then it blocks until
// the store has been told, for at most ReleaseTimeout; or later, in the background.
func (l lock) Unlock(context.Context) error {
	l.begin()
	defer l.done()
	l.running = false
	if left := time.Until(l.until); left > 0 {
		l.releaseAfter(left)
		return nil
	}
	return l.release()
}

// Lease returns the lease under which the job of that name runs, for its Check,
// Context and Token; or ErrNotLeader if it does not run in this process.
func (l *Locker) Lease(key string) (*elector.Lease, error) {
	l.mutex.Lock()
	j := l.jobs[key]
	l.mutex.Unlock()
	if j != nil {
		j.begin()
		defer j.done()
		if j.running {
			return j.lease, nil
		}
	}
	return nil, fmt.Errorf("electorgocron: job %q does not run in this process: %w", key, elector.ErrNotLeader)
}

// Close releases all locks, each when its minimum hold is over, and blocks until that
// is done, for at most the minimum hold and what [elector.Elector.Close] takes. Call
// it after the scheduler's Shutdown: a job that still runs loses its lease. Close
// leaves the backend open. Further calls return nil at once.
func (l *Locker) Close() error {
	l.mutex.Lock()
	first := !l.closed
	l.closed = true
	l.mutex.Unlock()
	if !first {
		return nil
	}
	l.end()
	var all sync.WaitGroup
	errs := make(chan error, len(l.jobs))
	for _, j := range l.jobs {
		all.Go(func() {
			j.begin()
			until := j.until
			j.done()
			time.Sleep(time.Until(until))
			errs <- j.elector.Close()
		})
	}
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}
