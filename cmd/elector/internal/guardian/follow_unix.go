//go:build unix

package guardian

import (
	"encoding/json"
	"errors"
	"syscall"
	"time"
)

// late is how late a guardian may be that was told to end the command while the
// lease is valid.
const late = 2 * time.Second

// patience is how long descendants may be alive after SIGKILL.
var patience = 10 * time.Second

// follow reads the reports until the last one. It does the guardian's work if that
// is killed, stopped or hangs.
func (g *Guarded) follow() {
	defer close(g.done)
	defer g.alarm.close()
	defer g.pipe.Close()
	defer g.in.Close()
	reports := make(chan report)
	go func() {
		defer close(reports)
		in := json.NewDecoder(g.in)
		for {
			var r report
			if err := in.Decode(&r); err != nil {
				return
			}
			reports <- r
		}
	}()
	again := Moment(0)
	empty := false
	for {
		g.alarm.set(max(g.due(), again))
		select {
		case r, more := <-reports:
			if !more {
				g.bury(empty)
				return
			}
			empty = empty || r.Empty || r.Failed != ""
			g.note(r)
		case <-g.alarm.rings:
			if Now() >= max(g.due(), again) {
				g.standIn()
				again = Now().Add(lastPause)
			}
		}
	}
}

// due is when the guardian must have done its work.
func (g *Guarded) due() Moment {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	m := g.lastMoment()
	if g.killAt != never {
		m = min(m, g.killAt.Add(late))
	}
	return m
}

// lastMoment leaves the guardian a quarter of the time for SIGKILL, and this process
// the rest. The mutex is held.
func (g *Guarded) lastMoment() Moment { return g.deadline.Add(-g.kill * 3 / 4) }

// note records a report.
func (g *Guarded) note(r report) {
	g.mutex.Lock()
	switch {
	case r.Started != 0:
		g.pid, g.started = r.Started, true
		if g.isolated {
			g.pid = outside(g.process.Process.Pid, r.Started)
		}
		close(g.began)
	case r.Errno != 0:
		g.failure = &Error{r.Failed, r.Errno}
	case r.Failed != "":
		g.failure = errors.New(r.Failed)
	}
	g.overdue = g.overdue || r.Overdue
	if r.Exit != nil {
		g.exit = r.Exit
	}
	g.mutex.Unlock()
	if r.Exit != nil {
		g.killBy(Now())
	}
	if r.Event != "" {
		g.events(r.Event)
	}
}

// standIn kills all if the guardian has left something alive, which it had to kill
// by now. After this process itself was stopped there is nothing.
func (g *Guarded) standIn() {
	g.mutex.Lock()
	pid := g.pid
	g.overdue = g.overdue || Now() >= g.lastMoment()
	g.mutex.Unlock()
	if began(g.began) && !alive(g.process.Process.Pid, pid) {
		return
	}
	g.stoodIn = true
	g.process.Process.Kill() // and with it the command; the others become children of this process
	killAll(pid)
	g.events("the guardian is late or stopped: SIGKILL to it, the command and all its descendants")
}

func began(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// bury reaps the guardian, and everything that it has left if it was killed.
func (g *Guarded) bury(empty bool) {
	defer func() {
		if !began(g.began) {
			close(g.began)
		}
	}()
	ended := make(chan struct{})
	go func() {
		g.process.Wait()
		close(ended)
	}()
	if g.isolated {
		g.buryNamespace(ended, empty)
		return
	}
	<-ended
	if empty {
		return
	}
	var h hunt
	by := Now().Add(patience)
	for first := true; ; first = false {
		found := h.again(g.pid)
		if first && !g.stoodIn {
			g.events("the guardian was killed: SIGKILL to the command and all its descendants")
		}
		if childless() {
			return
		}
		if Now() >= by {
			g.mutex.Lock()
			g.survivors = found
			g.mutex.Unlock()
			return
		}
		time.Sleep(time.Until(time.Now().Add(h.next.Until())))
	}
}

// buryNamespace waits until the guardian has ended, and with it all of its namespace.
func (g *Guarded) buryNamespace(ended <-chan struct{}, empty bool) {
	if !empty && !g.stoodIn {
		g.events("the guardian was killed, and with it the kernel kills the command and all its descendants")
	}
	select {
	case <-ended:
	case <-time.After(patience):
		g.mutex.Lock()
		defer g.mutex.Unlock()
		g.survivors = killAll(0)
	}
}

// childless reaps the dead children of this process, and reports whether none is
// left: then no descendant is left, because this process adopts them.
func childless() bool {
	for {
		switch pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); {
		case errors.Is(err, syscall.ECHILD):
			return true
		case pid == 0:
			return false
		}
	}
}
