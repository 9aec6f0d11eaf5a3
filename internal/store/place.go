package store

import "time"

const (
	// swapPoints is the number of times in an interval at which members swap, while few
	// requests can carry all swaps.
	swapPoints = 4

	// many is a number of members that should not make requests one by one.
	many = 16

	// readGrid is the longest time between the points at which members read.
	readGrid = 50 * time.Millisecond
)

// A Place is a member among those that make requests again and again. They make
// them at common points of time. A nil Place is that of a member by itself.
type Place struct {
	handle *handle
	line   *line
}

// Swapping returns a place among those that swap again and again.
func (c *Client) Swapping() *Place {
	return c.place(swaps)
}

// Reading returns a place among those that read again and again.
func (c *Client) Reading() *Place {
	return c.place(loads)
}

func (c *Client) place(k kind) *Place {
	h := c.enter()
	l := &h.lines[k]
	if l.most == 1 {
		h.leave()
		return nil
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	l.members++
	return &Place{h, l}
}

// Leave gives the place up.
func (p *Place) Leave() {
	if p == nil {
		return
	}
	p.handle.mutex.Lock()
	p.line.members--
	p.handle.mutex.Unlock()
	p.handle.leave()
}

// Members returns how many there are, 0 if there is only one.
func (p *Place) Members() int {
	if p == nil {
		return 0
	}
	p.handle.mutex.Lock()
	defer p.handle.mutex.Unlock()
	if p.line.members < 2 {
		return 0
	}
	return p.line.members
}

// Many reports whether there are so many that their requests, one by one, would hold up
// each other.
func (p *Place) Many() bool { return p.Members() >= many }

// Before returns the latest common point that is not after next, of which an interval
// has so many that few requests carry those of all members. Each grid is part of
// the finer ones, so that members that share requests still do so when more come.
func (p *Place) Before(next, every time.Duration) time.Duration {
	n := p.Members()
	if n == 0 {
		return next
	}
	points := swapPoints
	for points*p.line.most < n {
		points *= 2
	}
	return next - next%max(every/time.Duration(points), 1)
}

// After returns the first common point that is not before next. An interval has eight
// points at least, and each grid is part of the finer ones.
func (p *Place) After(next, every time.Duration) time.Duration {
	if p.Members() == 0 {
		return next
	}
	grid := readGrid
	for grid > max(every/8, 1) {
		grid /= 2
	}
	if late := next % grid; late > 0 {
		next += grid - late
	}
	return next
}
