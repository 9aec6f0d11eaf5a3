package elector

import "sync/atomic"

// A turn calls a function whenever something may have changed, in one goroutine at a time. While
// nothing changes it has none.
type turn struct {
	do    func()
	asked atomic.Int64 // since do was called last, and while it is called
}

// ask has do called by another goroutine, as soon as it is not called any more.
func (t *turn) ask() {
	if t.asked.Add(1) == 1 {
		go t.run()
	}
}

func (t *turn) run() {
	for {
		n := t.asked.Load()
		t.do()
		if t.asked.CompareAndSwap(n, 0) {
			return
		}
	}
}
