package checker

import (
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// fenceRules are about the fence and the guard, and guarantees 6 and 8.
var fenceRules = []ruleCase{
	// The fence.
	{"a stale write is taken", "tok/fence", func(s *story) {
		s.led("A", "B")
		s.write(500, "A", 5, 1, history.Wrote)
		s.tell(1000, "A", history.Writing, 5, number(2), left(1500))
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.write(1500, "B", 6, 1, history.Wrote)
		s.answer(1600, "A", 5, 2, history.Wrote)
	}},
	{"a stale write is refused", "", func(s *story) {
		s.led("A", "B")
		s.tell(1000, "A", history.Writing, 5, number(2), left(1500))
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.write(1500, "B", 6, 1, history.Wrote)
		s.answer(1600, "A", 5, 2, history.Refused)
	}},
	{"a late write that nothing newer came before", "", func(s *story) {
		s.led("A", "B")
		s.tell(1000, "A", history.Writing, 5, number(2), left(1500))
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.answer(1600, "A", 5, 2, history.Wrote)
	}},
	{"a fresh write is refused", "tok/fence", func(s *story) {
		s.led("A")
		s.write(500, "A", 5, 1, history.Wrote)
		s.write(700, "A", 5, 2, history.Refused)
	}},
	{"a write that the resource knows nothing of", "tok/fence", func(s *story) {
		s.led("A")
		s.tell(500, "A", history.Writing, 5, number(1), left(1500))
		s.tell(502, "A", history.Wrote, 5, number(1))
	}},
	{"a write without an answer", "", func(s *story) {
		s.led("A")
		s.tell(500, "A", history.Writing, 5, number(1), left(1500))
		s.tell(502, "A", history.Failed, 5, number(1), detail("timeout"))
		s.tell(503, "A", history.Accepted, 5, number(1))
	}},
	{"a write is refused while a newer one waits", "", func(s *story) {
		s.led("A", "B")
		s.write(500, "A", 5, 1, history.Wrote)
		s.tell(1000, "A", history.Writing, 5, number(2), left(1500))
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.tell(1500, "B", history.Writing, 6, number(1), left(1500))
		s.tell(1502, "B", history.Accepted, 6, number(1), until(1520))
		s.tell(1501, "B", history.Wrote, 6, number(1), until(1521))
		s.answer(1510, "A", 5, 2, history.Refused)
	}},
	{"a write is refused before the newer one came", "tok/fence", func(s *story) {
		s.led("A", "B")
		s.write(500, "A", 5, 1, history.Wrote)
		s.tell(1000, "A", history.Writing, 5, number(2), left(1500))
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.answer(1490, "A", 5, 2, history.Refused)
		s.write(1500, "B", 6, 1, history.Wrote)
	}},
	{"a write is refused while a newer one waits, which is refused for the newest", "", func(s *story) {
		s.tell(100, "A", history.Accepted, 5, number(1))
		s.tell(200, "B", history.Rejected, 6, number(1), until(300))
		s.tell(210, "A", history.Rejected, 5, number(2))
		s.tell(250, "C", history.Accepted, 7, number(1))
	}},

	// The guard of the data in the store.
	{"a stale guarded write is refused", "", func(s *story) {
		s.led("A", "B")
		s.guarded(500, 510, "A", 5, 1, history.Committed)
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.guarded(1500, 1510, "B", 6, 1, history.Committed)
		s.guarded(1600, 1610, "A", 5, 2, history.Stale)
		s.keep("A", 5, 1)
		s.keep("B", 6, 1)
	}},
	{"a stale guarded write is taken", "tok/guard", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.guarded(1600, 1610, "A", 5, 1, history.Committed)
	}},
	{"a guarded write that is sent before the successor and answered after it", "", func(s *story) {
		s.led("A", "B")
		s.guarded(1050, 1610, "A", 5, 1, history.Committed)
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.guarded(1700, 1710, "B", 6, 1, history.Committed)
		s.keep("A", 5, 1)
		s.keep("B", 6, 1)
	}},
	{"the same, and the data shows that it is stale", "tok/guard", func(s *story) {
		s.led("A", "B")
		s.guarded(1050, 1610, "A", 5, 1, history.Committed)
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.guarded(1400, 1410, "B", 6, 1, history.Committed)
		s.keep("B", 6, 1)
		s.keep("A", 5, 1)
	}},
	{"a stale guarded write without an answer stands in the data", "tok/guard", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 2500)
		s.guarded(1600, 1610, "A", 5, 1, history.Doubtful)
		s.keep("B", 6, 1)
		s.keep("A", 5, 1)
	}},
	{"a guarded write after its acquisition was written back", "", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.lead("B", 6, 1300, 1400)
		s.guarded(1350, 1360, "B", 6, 1, history.Committed)
		s.tell(1500, "", history.Restored, 5, holder("A"))
		s.guarded(1600, 1610, "A", 5, 1, history.Committed)
		s.lose(1910, "B", 6)
		s.keep("B", 6, 1)
		s.keep("A", 5, 1)
	}},
	{"a guarded write is refused, and its lease is renewed later", "tok/guard", func(s *story) {
		s.led("A")
		s.guarded(500, 510, "A", 5, 1, history.Stale)
	}},
	{"a guarded write is refused while the record is gone, which then comes back", "", func(s *story) {
		s.open("A")
		s.lead("A", 5, 100, 1500)
		s.tell(400, "", history.Removed, 0)
		s.guarded(410, 420, "A", 5, 1, history.Stale)
		s.tell(500, "", history.Restored, 5, holder("A"))
	}},
	{"a guarded write is sent after its lease's record was written back, and refused, and the lease is renewed later", "", func(s *story) {
		s.led("A")
		s.tell(400, "", history.Restored, 5, holder("A"))
		s.guarded(500, 510, "A", 5, 1, history.Stale)
	}},
	{"a guarded write is sent after another lease's record was written back, and refused, and the lease is renewed later", "tok/guard", func(s *story) {
		s.tell(50, "", history.Restored, 4, holder("B"))
		s.led("A")
		s.guarded(500, 510, "A", 5, 1, history.Stale)
	}},
	{"a guarded write is refused after the record was edited, and its lease is renewed later", "", func(s *story) {
		s.led("A")
		s.edit(400, 5, "A", "t_chaos=1")
		s.guarded(500, 510, "A", 5, 1, history.Stale)
	}},
	{"a guarded write is refused before the record is edited, and its lease is renewed later", "tok/guard", func(s *story) {
		s.led("A")
		s.guarded(500, 510, "A", 5, 1, history.Stale)
		s.edit(600, 5, "A", "t_chaos=1")
	}},
	{"a guarded write to a partition is refused after its record was edited, and its owner sees that later", "", func(s *story) {
		s.audit = 4
		s.open("A")
		s.lead("A", 5, 100, 2000)
		s.tell(400, "", history.Fault, 0, detail("partition: critical extension"))
		s.guarded(500, 510, "A", 5, 1, history.Stale)
		s.tell(900, "", history.Healed, 0, detail("partition: critical extension"))
		s.lose(2310, "A", 5)
	}},
	{"a guarded write to a partition is refused, and its owner keeps it after another one's record was edited", "tok/guard", func(s *story) {
		s.audit = 4
		s.open("A")
		s.lead("A", 5, 100, 11000)
		s.tell(400, "", history.Fault, 0, detail("partition: critical extension"))
		s.guarded(500, 510, "A", 5, 1, history.Stale)
		s.tell(900, "", history.Healed, 0, detail("partition: critical extension"))
	}},
	{"a guarded write that was taken is not in the data", "tok/guard", func(s *story) {
		s.led("A")
		s.guarded(500, 510, "A", 5, 1, history.Committed)
		s.guarded(700, 710, "A", 5, 2, history.Committed)
		s.keep("A", 5, 2)
	}},
	{"a guarded write that was refused is in the data", "tok/guard", func(s *story) {
		s.led("A", "B")
		s.resign(1100, "A", 5)
		s.guarded(1200, 1210, "A", 5, 1, history.Stale)
		s.keep("A", 5, 1)
	}},

	// Guarantee 6.
	{"a context that ends late", "part/holder", func(s *story) {
		s.led("A")
		s.tell(2510, "A", history.Ended, 5, detail("lost: it was not renewed"))
		s.tell(2800, "A", history.Canceled, 5)
	}},
	{"a context that never ends", "part/holder", func(s *story) {
		s.led("A")
		s.tell(2600, "A", history.Observed, 5, holder("A"))
		s.tell(2900, "A", history.Observed, 5, holder("A"))
	}},
	{"a context that ends just in time", "", func(s *story) {
		s.led("A")
		s.tell(2510, "A", history.Ended, 5, detail("lost: it was not renewed"))
		s.tell(2740, "A", history.Canceled, 5)
	}},
	{"a context that ends late because the process stood still", "", func(s *story) {
		s.led("A")
		s.tell(2400, "A", history.Stopped, 0)
		s.tell(4000, "A", history.Continued, 0)
		s.tell(4200, "A", history.Canceled, 5)
		s.tell(4210, "A", history.Ended, 5, detail("lost: it was not renewed"))
	}},
	{"a context of a process that did not live to see it", "", func(s *story) {
		s.led("A")
		s.tell(2600, "A", history.Killed, 0)
		s.tell(5000, "A", history.Exited, 0, detail("killed"))
	}},

	// Guarantee 8.
	{"the store is told too early", "res/order", func(s *story) {
		s.led("A")
		s.tell(1100, "A", history.Canceled, 5)
		s.tell(1110, "A", history.Released, 5)
		s.tell(1120, "A", history.Ended, 5, detail("resigned: "))
	}},
	{"the store is told and nothing ends", "res/order", func(s *story) {
		s.led("A")
		s.tell(1110, "A", history.Released, 5)
	}},
	{"the context ends long after the store was told", "res/order", func(s *story) {
		s.led("A")
		s.tell(1100, "A", history.Ended, 5, detail("resigned: "))
		s.tell(1110, "A", history.Released, 5)
		s.tell(1400, "A", history.Canceled, 5)
	}},
}
