package checker

import (
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// takeoverRules are about takeovers, and tokens that guarantee 5 is about.
var takeoverRules = []ruleCase{
	// The upper bound of a takeover.
	{"nobody follows one that was killed", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.lead("B", 6, 4500, 6000)
	}},
	{"nobody follows, and that is the end", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(5000, "B", history.Observed, 5, holder("A"))
	}},
	{"one follows at tau", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.lead("B", 6, 4440, 6000)
	}},
	{"one follows late because its process stood still", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(3000, "B", history.Stalled, 0, stalled(400))
		s.lead("B", 6, 4800, 6000)
	}},
	{"one follows late because it was stopped", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(3000, "B", history.Stopped, 0)
		s.tell(4000, "B", history.Continued, 0)
		s.lead("B", 6, 6500, 8000)
	}},
	{"one follows late because its network was cut", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(1200, "B", history.Fault, 0, detail("network: cut"))
		s.tell(4000, "B", history.Healed, 0, detail("network: cut"))
		s.lead("B", 6, 6500, 8000)
	}},
	{"the cut of the holder's network excuses nobody", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.tell(800, "A", history.Fault, 0, detail("network: cut"))
		s.lose(2510, "A", 5)
		s.lead("B", 6, 6300, 8000)
	}},
	{"what trickles from the holder may renew its record", "", func(s *story) {
		s.led("A", "B")
		s.tell(800, "A", history.Fault, 0, detail("network: trickle"))
		s.lose(2510, "A", 5)
		s.lead("B", 6, 6300, 8000)
	}},
	{"one follows late because the store was down", "", func(s *story) {
		s.led("A", "B")
		s.tell(1000, "", history.Fault, 0, detail("store: SIGSTOP"))
		s.lose(2510, "A", 5)
		s.tell(4000, "", history.Healed, 0, detail("store: SIGSTOP"))
		s.lead("B", 6, 7400, 9000)
	}},
	{"nobody follows after the store came back", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.tell(1000, "", history.Fault, 0, detail("store: SIGSTOP"))
		s.lose(2510, "A", 5)
		s.tell(4000, "", history.Healed, 0, detail("store: SIGSTOP"))
		s.lead("B", 6, 8000, 9000)
	}},
	{"nobody follows one that is stopped", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Stopped, 0)
		s.lead("B", 6, 4900, 6000)
		s.tell(6000, "A", history.Continued, 0)
		s.lose(6010, "A", 5)
	}},
	{"somebody led who could not tell", "", func(s *story) {
		s.led("A", "B", "D")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(3600, "B", history.Observed, 6, holder("D"))
		s.lead("B", 7, 6500, 8000)
	}},
	{"one waits whose network is cut all the time", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(1200, "B", history.Fault, 0, detail("network: cut"))
		s.tell(8000, "B", history.Observed, 5, holder("A"))
	}},
	{"nobody waits but who led", "", func(s *story) {
		s.led("A")
		s.lose(2510, "A", 5)
		s.tell(8000, "A", history.Observed, 5, holder("A"))
	}},
	{"nobody waits", "", func(s *story) {
		s.led("A")
		s.tell(1100, "A", history.Killed, 0)
		s.tell(9000, "B", history.Started, 0)
		s.tell(9010, "B", history.Opened, 0)
		s.lead("B", 6, 9100, 11000)
	}},
	{"nobody follows one that resigned", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 5000, 6000)
	}},

	// Guarantee 5.
	{"a lower token", "tok/strict", func(s *story) {
		s.open("A", "B")
		s.lead("A", 7, 100, 1000)
		s.resign(1100, "A", 7)
		s.lead("B", 6, 1300, 2500)
	}},
	{"a token twice", "tok/strict", func(s *story) {
		s.open("A", "B")
		s.lead("A", 7, 100, 1000)
		s.resign(1100, "A", 7)
		s.lead("B", 7, 1300, 2500)
	}},
	{"acquisitions whose order is in doubt", "", func(s *story) {
		s.open("A", "B")
		s.tell(1000, "A", history.Acquired, 7, left(1500))
		s.resign(1010, "A", 7)
		s.tell(690, "B", history.Acquired, 6, func(e *history.Event) { e.Valid = false }, until(1002))
	}},
	{"a read that goes back", "obs/monotonic", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.tell(1500, "A", history.Observed, 6, holder("B"))
		s.tell(1600, "A", history.Observed, 5)
	}},
	{"a read that goes back after a restore", "", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 1500)
		s.tell(1500, "A", history.Observed, 6, holder("B"))
		s.tell(1550, "", history.Restored, 5)
		s.tell(1600, "A", history.Observed, 5)
	}},
	{"reads at the same time", "", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.tell(1100, "A", history.Observed, 6, holder("B"), until(1400))
		s.tell(1110, "A", history.Observed, 5, until(1500))
	}},
}
