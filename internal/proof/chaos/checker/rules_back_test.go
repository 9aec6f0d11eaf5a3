package checker

import (
	"github.com/elector-go/elector/internal/proof/chaos/history"
)

// backRules are about a leader, or the owner of a partition, that must come soon, as nothing is
// broken any more.
var backRules = []ruleCase{
	{"no owner of a partition writes", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(9000, "A", history.Observed, 0)
	}},
	{"an owner of a partition writes late", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.lead("A", 5, 5000, 6000)
		s.write(5100, "A", 5, 1, history.Wrote)
	}},
	{"an owner of a partition writes in time", "", func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.lead("A", 5, 3000, 6000)
		s.write(3100, "A", 5, 1, history.Wrote)
	}},
	{"a partition's record is deleted before its owner has written, and the next owner is in time", "", func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(1300, "", history.Removed, 0)
		s.tell(1310, "", history.Quiet, 0, left(9000))
		s.lead("A", 5, 8000, 9000)
		s.write(8100, "A", 5, 1, history.Wrote)
	}},
	{"a partition's record is deleted when its owner is already late", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(5000, "", history.Removed, 0)
		s.tell(5010, "", history.Quiet, 0, left(9000))
		s.lead("A", 5, 8000, 9000)
		s.write(8100, "A", 5, 1, history.Wrote)
	}},
	{"a partition's record is deleted before its owner has written, and the next owner is late", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(1300, "", history.Removed, 0)
		s.tell(1310, "", history.Quiet, 0, left(9000))
		s.lead("A", 5, 11000, 12000)
		s.write(11100, "A", 5, 1, history.Wrote)
	}},
	{"one member's store was slow, and then another's", "", func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(1500, "A", history.Trouble, 0, detail("swap: no answer"))
		s.tell(2800, "B", history.Trouble, 0, detail("swap: no answer"))
		s.lead("A", 5, 5000, 6000)
		s.write(5100, "A", 5, 1, history.Wrote)
	}},
	{"one member's store was slow, and then refused another", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(1500, "A", history.Trouble, 0, detail("swap: no answer"))
		s.tell(2800, "B", history.Denied, 0, detail("swap: it is a replica"))
		s.lead("A", 5, 5000, 6000)
		s.write(5100, "A", 5, 1, history.Wrote)
	}},
	{"one member's store was slow, and no owner writes later", NotBack, func(s *story) {
		s.open("A", "B")
		s.tell(1000, "", history.Quiet, 0, left(3000))
		s.tell(1500, "A", history.Trouble, 0, detail("swap: no answer"))
		s.lead("A", 5, 5500, 6500)
		s.write(5600, "A", 5, 1, history.Wrote)
	}},
}
