package checker

import (
	"slices"
	"strings"
	"testing"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// TestRules shows that each rule finds what breaks it, and nothing else does,
// and that what comes near to that breaks none.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name string
		rule string // none for a good history; two with a space
		tell func(*story)
	}{
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
		{"kept and tenure extensions as they shall be", "", func(s *story) {
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
		{"an acquisition keeps a tenure extension", "rec/tenure", func(s *story) {
			s.led("A", "B")
			s.edit(1000, 5, "A", history.Extension("t_x", "1"))
			s.resign(1300, "A", 5)
			s.lead("B", 6, 1400, 3000)
			s.show(3000, 6, "B", `{"t_x":"1"}`)
		}},
		{"a release keeps a tenure extension", "rec/tenure", func(s *story) {
			s.led("A", "B")
			s.edit(1000, 5, "A", history.Extension("t_x", "1"))
			s.resign(1300, "A", 5)
			s.show(1350, 5, "", `{"t_x":"1"}`)
		}},
		{"a hand empties the record of a tenure", "", func(s *story) {
			s.led("A", "B")
			s.edit(1000, 5, "A", history.Extension("t_x", "1"))
			s.edit(1010, 5, "", history.EditedHolder)
			s.show(1020, 5, "", `{"t_x":"1"}`)
			s.lose(1310, "A", 5)
		}},
		{"a renewal drops a tenure extension", "rec/tenure", func(s *story) {
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
			s.tell(4010, "B", history.Disbelieved, 8, detail("C holds it with token 9"))
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
			s.tell(3110, "B", history.Disbelieved, 10, detail("terminated"))
			s.tell(3120, "A", history.Observed, 10, holder("B"))
			s.tell(3130, "B", history.Released, 10)
			s.tell(3140, "A", history.Observed, 10)
		}},
		{"a swap that was taken back by one whose campaign had ended", "", func(s *story) {
			s.led("A", "B")
			s.resign(1100, "A", 5)
			s.tell(1110, "B", history.Disbelieved, 8, detail("context canceled"))
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
			s.tell(4010, "B", history.Disbelieved, 8, detail("C holds it with token 9"))
			s.lead("B", 8, 4100, 5000)
		}},
		{"a swap that was not believed replaces garbage", Linearizable, func(s *story) {
			s.open("A", "B")
			s.tell(1, "", history.Spoiled, 0)
			s.tell(4010, "B", history.Disbelieved, 8)
			s.tell(4020, "A", history.Observed, 8, holder("B"))
		}},
		{"a leader that was killed before it told is observed", "", func(s *story) {
			s.open("A", "B")
			s.tell(700, "B", history.Observed, 5, holder("A"))
			s.tell(710, "A", history.Killed, 0)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s story
			c.tell(&s)
			h := s.history()
			found := Check(h)
			if got := strings.Join(rulesOf(found), " "); got != c.rule {
				t.Fatalf("found %q, want %q\n%v", got, c.rule, texts(found))
			}
			for _, v := range found {
				t.Log(v)
				checkKept(t, h, v)
			}
		})
	}
}

// rulesOf returns the rules that are broken, each once.
func rulesOf(found []Violation) (rules []string) {
	for _, v := range found {
		if !slices.Contains(rules, v.Rule) {
			rules = append(rules, v.Rule)
		}
	}
	slices.Sort(rules)
	return rules
}

func texts(found []Violation) string {
	var all []string
	for _, v := range found {
		all = append(all, v.String())
	}
	return strings.Join(all, "\n")
}

// checkKept fails if a violation that was kept is not found again.
func checkKept(t *testing.T, h *history.History, v Violation) {
	t.Helper()
	path, err := Keep(t.TempDir(), h, v)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{path, strings.TrimSuffix(path, ".history") + "-whole.history"} {
		loaded, err := history.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		again := func(w Violation) bool { return w.Rule == v.Rule && w.Text == v.Text }
		if found := Check(loaded); !slices.ContainsFunc(found, again) {
			t.Errorf("%s does not show %q any more:\n%s", file, v.Text, texts(found))
		}
	}
}
