package store

import "time"

// A size is how many requests of a line go together. It falls where requests for many fail
// while the store may well answer those for few, and grows again with what is answered.
type size struct {
	most int // what the backend allows
	now  int // what is sent, at most

	bad      int           // what has failed last, 0 for none
	patience int           // how many answers are wanted before as many as that are tried again
	answers  int           // of requests as large as now allows, since the last failure
	trial    bool          // one that is larger is under way
	hung     int           // larger ones whose time is over, and that have not returned
	good     int           // what was answered last
	goodAt   time.Duration // monotonic
}

const (
	mostPatience = 64
	mostTrials   = 8 // that hang
)

// next returns how many the next request may be for. What has failed is tried again by one
// request at a time, more and more rarely, and not while several of these hang.
func (s *size) next() int {
	if s.bad > 0 && s.bad <= 2*s.now && s.answers > s.patience && !s.trial && s.hung < mostTrials {
		return min(2*s.now, s.most)
	}
	return s.now
}

// answered notes that n requests that went together were answered.
func (s *size) answered(n int, now time.Duration) {
	s.good, s.goodAt = n, now
	if n >= s.bad {
		s.bad, s.patience = 0, 0
	}
	if n < s.now {
		return
	}
	s.answers++
	if next := min(2*n, s.most); s.bad == 0 || next < s.bad {
		s.now = next
	}
}

// failed notes that the requests of a batch have failed together. If about as many were answered
// shortly before, one of them may be the reason: their clients' next requests go with a tenth,
// and then alone, until the store has answered them. Otherwise it may be how many they are, and
// all go with a tenth; or with half if the store has refused them.
func (s *size) failed(b *batch, refused bool, now time.Duration) {
	n := len(b.went)
	part := max(n/10, 1)
	if refused {
		part = n / 2
	}
	switch {
	case n <= 1:
	case b.trial, n <= s.now && !s.works(b, now):
		s.now, s.answers = min(s.now, part), 0
		s.bad, s.patience = n, min(2*s.patience+1, mostPatience)
	case !refused && n <= s.now:
		for _, r := range b.went {
			r.client.most[r.line.kind] = part
		}
	}
}

// works reports whether about as many as those of a batch were answered lately.
func (s *size) works(b *batch, now time.Duration) bool {
	return s.good > 1 && s.good > len(b.went)/2 && now-s.goodAt < 2*b.timeout
}
