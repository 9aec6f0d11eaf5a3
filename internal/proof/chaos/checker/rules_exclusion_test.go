package checker

import (
	"github.com/elector-go/elector"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// exclusionRules are about guarantees 1 to 3: one holder, whose lease and tokens hold.
var exclusionRules = []ruleCase{
	{"a quiet election", "", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2000)
		s.write(500, "A", 5, 1, history.Wrote)
		s.tell(700, "B", history.Observed, 5, holder("A"))
		s.resign(2100, "A", 5)
		s.tell(2500, "B", history.Observed, 5)
		s.lead("B", 6, 2600, 4000)
		s.write(3000, "B", 6, 1, history.Wrote)
	}},

	// Guarantee 1.
	{"a successor before the holder's end", "mx/two-valid", func(s *story) {
		s.led("A", "B")
		s.lead("B", 6, 1500, 2500)
		s.resign(1700, "A", 5)
	}},
	{"a successor of one that was killed, before its deadline", "mx/two-valid", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "A", history.Killed, 5)
		s.lead("B", 6, 2300, 3500)
	}},
	{"a Check after the successor's", "mx/two-valid", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 200)
		s.lead("B", 6, 4000, 6000)
		s.tell(150, "A", history.Renewed, 5, left(1700), until(4500)) // stopped for long before it told
		s.look(4600, "A", history.Checked, 5, 100)
	}},
	{"a successor right after the end was told", "", func(s *story) {
		s.led("A", "B")
		s.resign(1500, "A", 5)
		s.tell(1504, "B", history.Acquired, 6, left(1795))
	}},
	{"a look that took very long tells nothing of its end", "", func(s *story) {
		s.open("A", "B")
		s.look(110, "A", history.Acquired, 5, 1785)
		s.tell(300, "A", history.Checked, 5, left(1600), until(6000)) // stopped in it
		s.tell(301, "A", history.Stopped, 0)
		s.tell(5990, "A", history.Continued, 0)
		s.lead("B", 6, 2500, 6000)
		s.lose(6001, "A", 5)
	}},
	{"a restored vacancy that a newcomer takes", "", func(s *story) {
		s.led("A", "B")
		s.tell(1100, "", history.Restored, 2)
		s.tell(1150, "N", history.Started, 0)
		s.lead("N", 6, 1200, 3000)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: the record was changed"))
	}},

	// Guarantee 2.
	{"a Check after the deadline", "exp/exact", func(s *story) {
		s.led("A")
		s.look(2600, "A", history.Checked, 5, 10)
		s.lose(2650, "A", 5)
	}},
	{"a Check after the deadline, seen again after one renewal that may not have been told", "exp/exact", func(s *story) {
		s.led("A")
		s.look(2600, "A", history.Checked, 5, 10)
		s.look(4700, "A", history.Checked, 5, 10)
	}},
	{"a renewal that is told late", "", func(s *story) {
		s.led("A")
		s.look(2600, "A", history.Checked, 5, 1600)
		s.look(2900, "A", history.Renewed, 5, 1300)
	}},
	{"a renewal that was killed before it was told", "", func(s *story) {
		s.led("A")
		s.look(2600, "A", history.Checked, 5, 1600)
		s.tell(2610, "A", history.Killed, 0)
	}},
	{"a Check at the last moment, told much later", "", func(s *story) {
		s.led("A")
		s.tell(2480, "A", history.Checked, 5, func(e *history.Event) { e.Valid = true }, until(3000))
		s.tell(3001, "A", history.Stalled, 0, stalled(500))
		s.lose(3002, "A", 5)
	}},
	{"more time than H", "exp/from-send", func(s *story) {
		s.open("A")
		s.look(100, "A", history.Acquired, 5, 1900)
	}},
	{"valid again after its end", "ren/resurrect", func(s *story) {
		s.led("A")
		s.lose(1300, "A", 5)
		s.look(1500, "A", history.Checked, 5, 100)
	}},
	{"valid again after Check failed", "ren/resurrect", func(s *story) {
		s.led("A")
		s.look(1300, "A", history.Checked, 5, 0)
		s.look(1400, "A", history.Checked, 5, 300)
		s.lose(1500, "A", 5)
	}},
	{"a Check that was begun before the end and told after it", "", func(s *story) {
		s.led("A")
		s.tell(1290, "A", history.Checked, 5, left(1000), until(1600))
		s.lose(1300, "A", 5)
	}},

	// Guarantee 3.
	{"a takeover before C of a lease that was lost", TooEarly, func(s *story) {
		s.led("A", "B")
		s.lose(1300, "A", 5)
		s.lead("B", 6, 2800, 4000)
	}},
	{"a takeover at C", "", func(s *story) {
		s.led("A", "B")
		s.lose(2500, "A", 5)
		s.lead("B", 6, 2910, 4000)
	}},
	{"a takeover of a leader that was deposed", "", func(s *story) {
		s.led("A", "B")
		s.tell(1298, "A", history.Canceled, 5)
		s.tell(1300, "A", history.Ended, 5, detail("lost: "+elector.ErrDeposed.Error()))
		s.lead("B", 6, 1400, 3000)
	}},
	{"a candidate that retakes what it lost", "", func(s *story) {
		s.led("A")
		s.lose(1300, "A", 5)
		s.lead("A", 6, 1400, 3000)
	}},
	{"a vanished record is taken before C by one who had seen it", "mx/vanished", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Removed, 0)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: it is gone"))
		s.lead("B", 6, 2900, 4500)
	}},
	{"a vanished record is taken after C", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Removed, 0)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: it is gone"))
		s.lead("B", 6, 3310, 4500)
	}},
	{"a vanished record is put back at once", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.resign(1050, "A", 5)
		s.tell(1100, "", history.Removed, 0)
		s.tell(1110, "", history.Restored, 5)
		s.lead("B", 6, 1310, 2500)
	}},
	{"a vanished record is taken while its holder leads", "mx/two-valid", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Removed, 0)
		s.lead("B", 6, 1150, 3000)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: it is gone"))
	}},
	{"a record that was rolled back is taken before C", "mx/rollback", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Restored, 3)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: the record was changed"))
		s.lead("B", 6, 2900, 4500)
	}},
	{"a record that its store lost in a crash, told later", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Fault, 0, detail("store: kill -9"))
		s.lose(2510, "A", 5)
		s.tell(2000, "", history.Removed, 0)
		s.tell(2010, "", history.Healed, 0, detail("store: kill -9"))
		s.lead("B", 6, 3700, 4500)
	}},

	{"a state of the holder's own that one saw for long comes back", "", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2400)
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(2000, "", history.Restored, 5, holder("A"))
		s.lead("B", 6, 2350, 4000) // it had seen that state from 150 on, and no other
		s.lose(2420, "A", 5)
	}},
	{"a record vanishes twice, and its holder had not seen what was in between", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.tell(1100, "", history.Removed, 0)
		s.look(1200, "A", history.Writing, 5, 1200)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: it is gone"))
		s.tell(2000, "", history.Removed, 0)
		s.lead("A", 6, 3510, 4500)
	}},
	{"a vanished record is taken by a newcomer", "", func(s *story) {
		s.led("A")
		s.tell(1100, "", history.Removed, 0)
		s.tell(1310, "A", history.Canceled, 5)
		s.tell(1312, "A", history.Ended, 5, detail("lost: it is gone"))
		s.tell(1400, "B", history.Started, 0)
		s.lead("B", 6, 1500, 4500)
	}},
}
