// Package report shows a history to people: as figures in a table for the
// terminal, and as an HTML page with a time line for each election.
package report

import (
	"fmt"
	"time"
)

// A Problem is a rule that the history breaks, as the checker tells it.
type Problem struct {
	Election string        // the name of an election of the history
	Rule     string        // its name
	Text     string        // what is wrong
	At       time.Duration // when it was broken, on BootTime
	Class    string        // what it is about: "safety", or another word of the checker's
}

// account is the class of what breaks no guarantee, but cannot be explained.
const account = "the account"

// About is what the page says about the run that made the history.
type About struct {
	Seed  uint64        // with it the campaign breaks the same things again
	Took  time.Duration // the length of the run; zero takes it from the history
	Notes []string      // anything else that a reader should know, one sentence each
}

// length writes a duration for people: "12 ms", "3.21 s", "2 min 05 s".
func length(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + length(-d)
	case d < 995*time.Microsecond && d > 0:
		return "<1 ms"
	case d < 999500*time.Microsecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d%time.Second == 0 && d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Minute-5*time.Millisecond:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %02d s", d/time.Minute, d%time.Minute/time.Second)
}

// clock writes a time since the beginning of the history: "12:30".
func clock(d time.Duration) string {
	d = d.Truncate(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%d:%02d", d/time.Minute, d%time.Minute/time.Second)
}

// plural writes a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// thousands writes a number with its thousands apart.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u00a0" + s[i:]
	}
	return s
}
