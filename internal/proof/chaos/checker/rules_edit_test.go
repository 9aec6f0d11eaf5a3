package checker

import (
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// editRules are about records that were edited by hand.
var editRules = []ruleCase{
	// Records that were edited by hand.
	{"a record without its holder is renewed", "rec/edited", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "", history.EditedHolder)
	}},
	{"a value that was changed is renewed", "rec/edited", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "A", history.EditedValue)
	}},
	{"an edited record is lost at the next renewal, and told", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedInterval)
		s.lose(1310, "A", 5)
		s.tell(1320, "A", history.Released, 5)
		s.lead("B", 6, 1340, 3000)
	}},
	{"an edited record is lost late", "rec/edited", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedInterval)
		s.lose(2100, "A", 5)
	}},
	{"an edited record is lost at the end of its time", "rec/edited", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedTTL, left(700))
		s.lose(2500, "A", 5)
	}},
	{"an edited record is lost late because its holder stood still", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedInterval)
		s.tell(1900, "A", history.Stalled, 0, stalled(400))
		s.lose(2300, "A", 5)
	}},
	{"an edited record is lost late because requests failed", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedInterval)
		s.tell(1400, "A", history.Trouble, 0, detail("swap: no answer"))
		s.lose(2300, "A", 5)
	}},
	{"a conflict is an answer", "rec/edited", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedInterval)
		s.tell(1400, "A", history.Trouble, 0, detail("swap: "+backends.ErrConflict.Error()))
		s.lose(2300, "A", 5)
	}},
	{"an edited record is put back before its holder looks", "", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "", history.EditedHolder)
		s.tell(1010, "", history.Restored, 5, holder("A"))
	}},
	{"the holder of an edited record is killed", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedValue)
		s.tell(1100, "A", history.Killed, 0)
		s.lead("B", 6, 3210, 4500)
	}},
	{"who finds no holder leads, and the old one does not know yet", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "", history.EditedHolder)
		s.tell(1005, "B", history.Observed, 5)
		s.lead("B", 6, 1010, 3000)
		s.lose(1310, "A", 5)
	}},
	{"both lead on for longer than a renewal", "mx/two-valid rec/edited", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "", history.EditedHolder)
		s.lead("B", 6, 1010, 3000)
		s.lose(2300, "A", 5)
	}},
	{"one leads before the edit that is to excuse it", "mx/two-valid", func(s *story) {
		s.led("A", "B")
		s.lead("B", 6, 900, 3000)
		s.edit(1000, 5, "", history.EditedHolder)
		s.lose(1310, "A", 5)
	}},
	{"a value that was changed excuses no overlap", "mx/two-valid", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedValue)
		s.lead("B", 6, 1010, 3000)
		s.lose(1310, "A", 5)
	}},
	{"a shorter TTL passes before the holder knows", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedTTL, left(200))
		s.lead("B", 6, 1230, 3000)
		s.lose(1310, "A", 5)
	}},
	{"a shorter TTL is not waited for", TooEarly, func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedTTL, left(700))
		s.lose(1310, "A", 5)
		s.lead("B", 6, 1500, 3000)
	}},
	{"a shorter TTL that vanishes", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.edit(1000, 5, "A", history.EditedTTL, left(700))
		s.tell(1100, "", history.Removed, 0)
		s.lose(1310, "A", 5)
		s.lead("B", 6, 2000, 4500)
	}},
	{"a record vanishes before all have seen that it has its whole TTL again", "", func(s *story) {
		s.led("A", "B")
		s.tell(150, "B", history.Waits, 5, holder("A"))
		s.edit(1000, 5, "A", history.EditedTTL, left(700))
		s.lose(1310, "A", 5)
		s.lead("B", 6, 1780, 2000)
		s.tell(1900, "", history.Removed, 0)
		s.tell(2405, "B", history.Canceled, 6)
		s.tell(2407, "B", history.Ended, 6, detail("lost: it is gone"))
		s.lead("A", 7, 2700, 4500)
	}},
	{"a record vanishes when all have seen that it has its whole TTL again", "mx/vanished", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedTTL, left(700))
		s.lose(1310, "A", 5)
		s.lead("B", 6, 1780, 2000)
		s.tell(1850, "A", history.Observed, 6, holder("B"))
		s.tell(1900, "", history.Removed, 0)
		s.tell(2405, "B", history.Canceled, 6)
		s.tell(2407, "B", history.Ended, 6, detail("lost: it is gone"))
		s.lead("A", 7, 2700, 4500)
	}},
	{"a lost lease is told by one that dies before it says so", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.EditedValue)
		s.lose(1310, "A", 5)
		s.tell(1330, "A", history.Killed, 0)
		s.lead("B", 6, 1340, 3000)
	}},
	{"one leads although a critical extension stands", "rec/critical", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("c_x", "1"))
		s.lose(1310, "A", 5)
		s.lead("B", 6, 3010, 4000)
		s.edit(5000, 5, "A", history.Extension("c_x", ""))
	}},
	{"a critical extension is renewed", "rec/critical", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "A", history.Extension("c_x", "1"))
	}},
	{"a critical extension is dropped", "rec/critical", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("c_x", "1"))
		s.lose(1310, "A", 5)
		s.show(1400, 5, "A", "")
	}},
	{"one leads when the critical extension is gone, and nobody before", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("c_x", "1"))
		s.lose(1310, "A", 5)
		s.show(7000, 5, "A", `{"c_x":"1"}`)
		s.edit(8000, 5, "A", history.Extension("c_x", ""))
		s.lead("B", 6, 8010, 9000)
	}},
	{"nobody leads when the critical extension is gone", "mx/takeover-bound", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("c_x", "1"))
		s.lose(1310, "A", 5)
		s.edit(5000, 5, "A", history.Extension("c_x", ""))
		s.lead("B", 6, 9000, 9900)
	}},
	{"kept and term extensions as they shall be", "", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "A", history.Extension("k_x", "1"))
		s.edit(1010, 5, "A", history.Extension("t_x", "2"))
		s.show(2000, 5, "A", `{"k_x":"1","t_x":"2"}`)
		s.resign(2600, "A", 5)
		s.show(2620, 5, "", `{"k_x":"1"}`)
		s.lead("B", 6, 2650, 4000)
		s.show(3000, 6, "B", `{"k_x":"1"}`)
	}},
	{"an acquisition drops a kept extension", "rec/kept", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("k_x", "1"))
		s.resign(1300, "A", 5)
		s.lead("B", 6, 1400, 3000)
		s.show(3000, 6, "B", "")
	}},
	{"a kept extension of a record that was rolled back", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("k_x", "1"))
		s.tell(1100, "", history.Restored, 5, holder("A"))
		s.lose(1310, "A", 5)
		s.show(1400, 5, "A", "")
	}},
	{"an acquisition keeps a term extension", "rec/term", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("t_x", "1"))
		s.resign(1300, "A", 5)
		s.lead("B", 6, 1400, 3000)
		s.show(3000, 6, "B", `{"t_x":"1"}`)
	}},
	{"a release keeps a term extension", "rec/term", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("t_x", "1"))
		s.resign(1300, "A", 5)
		s.show(1350, 5, "", `{"t_x":"1"}`)
	}},
	{"a hand empties the record of a term", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("t_x", "1"))
		s.edit(1010, 5, "", history.EditedHolder)
		s.show(1020, 5, "", `{"t_x":"1"}`)
		s.lose(1310, "A", 5)
	}},
	{"a renewal drops a term extension", "rec/term", func(s *story) {
		s.open("A", "B")
		s.lead("A", 5, 100, 2500)
		s.edit(1000, 5, "A", history.Extension("t_x", "1"))
		s.show(2000, 5, "A", "")
	}},
	{"a kept extension costs a lease", "rec/kept", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("k_x", "1"))
		s.lose(1310, "A", 5)
	}},
	{"a lease that ran out after an extension was added", "", func(s *story) {
		s.led("A", "B")
		s.edit(2000, 5, "A", history.Extension("k_x", "1"))
		s.lose(2510, "A", 5)
	}},
	{"a lease whose record was deleted after an extension was added", "", func(s *story) {
		s.led("A", "B")
		s.edit(1000, 5, "A", history.Extension("t_x", "1"))
		s.tell(1100, "", history.Removed, 0)
		s.lose(1310, "A", 5)
	}},
}
