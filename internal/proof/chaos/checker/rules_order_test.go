package checker

import (
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// orderRules are about processes and the order of what they see.
var orderRules = []ruleCase{
	// Processes.
	{"a candidate gives up", GaveUp, func(s *story) {
		s.open("A")
		s.tell(500, "A", history.Fatal, 0, detail("no such table"))
		s.tell(510, "A", history.Exited, 0, detail("exit status 1"))
	}},
	{"a process crashes", GaveUp, func(s *story) {
		s.open("A")
		s.tell(510, "A", history.Exited, 0, detail("exit status 2"))
	}},
	{"a process is killed, another ends in order", "", func(s *story) {
		s.open("A", "B")
		s.tell(500, "A", history.Killed, 0)
		s.tell(510, "A", history.Exited, 0, detail("signal: killed"))
		s.tell(520, "B", history.Terminated, 0)
		s.tell(530, "B", history.Exited, 0)
	}},

	// Orders.
	{"two readers see two leaders in both orders", Linearizable, func(s *story) {
		s.led("A", "B", "D", "E")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.tell(1500, "D", history.Observed, 6, holder("B"))
		s.tell(1600, "E", history.Observed, 5, holder("A"))
	}},
	{"a renewal of what another has", Linearizable, func(s *story) {
		s.open("A", "B", "D")
		s.lead("A", 5, 100, 500)
		s.tell(1000, "D", history.Observed, 6, holder("B"))
		s.look(1410, "A", history.Renewed, 5, 1785)
	}},
	{"a vacancy that nobody made", Linearizable, func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 1500)
		s.tell(700, "B", history.Observed, 5)
	}},
	{"a record that is garbage is read", Linearizable, func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 500)
		s.tell(700, "", history.Spoiled, 0)
		s.tell(800, "B", history.Observed, 5, holder("A"))
	}},
	{"a lower token that nobody told of", Linearizable, func(s *story) {
		s.open("A", "B", "D", "E")
		s.lead("A", 5, 100, 500)
		s.tell(600, "D", history.Observed, 5, holder("A"))
		s.tell(800, "E", history.Observed, 4, holder("B"))
	}},
	{"a vacancy after a release whose answer was lost", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Canceled, 5)
		s.tell(1102, "A", history.Ended, 5, detail("resigned: "))
		s.tell(1150, "B", history.Observed, 5, holder("A"))
		s.tell(1200, "A", history.Killed, 0)
		s.tell(1300, "B", history.Observed, 5)
	}},
	{"a read while the record changes", "", func(s *story) {
		s.led("A", "B", "D")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.tell(1050, "D", history.Observed, 5, holder("A"), until(1400))
	}},
	{"a creation without an answer that is applied again when the record is removed", "", func(s *story) {
		s.open("A", "B", "D")
		s.tell(400, "A", history.Trouble, 0, detail("swap: no answer"))
		createdAgain(s)
	}},
	{"a creation that was answered, and applied again when the record is removed", Linearizable, func(s *story) {
		s.open("A", "B", "D")
		createdAgain(s)
	}},
	{"a creation without an answer that is applied again although there is a record", Linearizable, func(s *story) {
		s.open("A", "B", "D", "E")
		s.tell(400, "A", history.Trouble, 0, detail("swap: no answer"))
		s.tell(500, "E", history.Observed, 5, holder("A"))
		s.tell(1000, "", history.Removed, 0)
		s.lead("B", 6, 3400, 4000)
		s.tell(3500, "D", history.Observed, 6, holder("B"))
		s.tell(3600, "E", history.Observed, 5, holder("A"))
	}},
	{"a swap that was applied and not believed", "", func(s *story) {
		// C was stopped inside the file lock, where B came to wait with a
		// takeover of C's old state. C went on and won anew; the old state
		// was put back; B's swap found what it compared with. B had seen
		// what C won and waits. Everybody sees a token that goes back.
		s.open("A", "B", "C")
		s.lead("C", 5, 100, 1000)
		s.tell(1100, "C", history.Stopped, 0)
		s.tell(3900, "C", history.Continued, 0)
		s.lose(3901, "C", 5)
		s.lead("C", 9, 3910, 4500)
		s.tell(3950, "A", history.Observed, 9, holder("C"))
		s.tell(4000, "", history.Restored, 5, holder("C"))
		s.tell(4010, "B", history.Discarded, 8, detail("C holds it with token 9"))
		s.tell(4020, "A", history.Observed, 8, holder("B"))
		s.tell(4515, "C", history.Canceled, 9)
		s.tell(4517, "C", history.Ended, 9, detail("lost: the record was changed"))
		s.lead("A", 10, 6230, 7000)
	}},
	{"the same, by one that was killed before it told", "", func(s *story) {
		s.open("A", "B", "C")
		s.lead("C", 9, 100, 1000)
		s.tell(900, "A", history.Observed, 9, holder("C"))
		s.tell(1000, "", history.Restored, 5, holder("C"))
		s.tell(1010, "B", history.Killed, 0)
		s.tell(1020, "A", history.Observed, 8, holder("B"))
		s.lose(1310, "C", 9)
	}},
	{"a swap that was taken back by one that was told to end", "", func(s *story) {
		s.led("A", "B", "D")
		s.resign(1100, "A", 5)
		s.tell(1110, "B", history.Terminated, 0)
		s.tell(1120, "A", history.Observed, 6, holder("B"))
		s.tell(1130, "A", history.Observed, 6)
		s.lead("A", 7, 1140, 2000)
		s.resign(2100, "A", 7)
		s.tell(2115, "B", history.Released, 8)
		s.tell(2120, "A", history.Observed, 8) // not seen before
		s.lead("D", 9, 2200, 3000)
		s.resign(3100, "D", 9)
		s.tell(3110, "B", history.Discarded, 10, detail("terminated"))
		s.tell(3120, "A", history.Observed, 10, holder("B"))
		s.tell(3130, "B", history.Released, 10)
		s.tell(3140, "A", history.Observed, 10)
	}},
	{"a swap that was taken back by one whose campaign had ended", "", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.tell(1110, "B", history.Discarded, 8, detail("context canceled"))
		s.tell(1120, "B", history.Released, 8)
		s.tell(1130, "A", history.Observed, 8)
	}},
	{"a release that found an edited record", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedValue)
		s.lose(1310, "A", 5)
		s.tell(1330, "A", history.Released, 5)
		s.tell(1400, "B", history.Observed, 5, holder("A"))
	}},
	{"a release that found an earlier state of its own", "", func(s *story) {
		s.led("A", "B")
		s.tell(1000, "", history.Restored, 5, holder("A"))
		s.lose(2510, "A", 5)
		s.tell(2520, "A", history.Released, 5)
		s.tell(2600, "B", history.Observed, 5, holder("A"))
	}},
	{"a swap that was not believed, and led by", Linearizable, func(s *story) {
		s.open("A", "B")
		s.tell(4010, "B", history.Discarded, 8, detail("C holds it with token 9"))
		s.lead("B", 8, 4100, 5000)
	}},
	{"a swap that was not believed replaces garbage", Linearizable, func(s *story) {
		s.open("A", "B")
		s.tell(1, "", history.Spoiled, 0)
		s.tell(4010, "B", history.Discarded, 8)
		s.tell(4020, "A", history.Observed, 8, holder("B"))
	}},
	{"a leader that was killed before it told is observed", "", func(s *story) {
		s.open("A", "B")
		s.tell(700, "B", history.Observed, 5, holder("A"))
		s.tell(710, "A", history.Killed, 0)
	}},
}

// createdAgain has A's creation overtaken by B, and there again when the record is removed.
func createdAgain(s *story) {
	s.tell(500, "D", history.Observed, 5, holder("A"))
	s.lead("B", 6, 2600, 3000)
	s.tell(2700, "D", history.Observed, 6, holder("B"))
	s.tell(3100, "", history.Removed, 0)
	s.tell(3200, "D", history.Observed, 5, holder("A"))
	s.tell(3210, "B", history.Canceled, 6)
	s.tell(3212, "B", history.Ended, 6, detail("lost: the record was changed"))
	s.tell(3300, "A", history.Discarded, 5, detail("the token went backwards"))
}
