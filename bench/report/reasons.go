package report

import "github.com/elector-go/elector/bench/results"

// A place is where a reason belongs: the rows of a case, whatever the number of
// waiters or elections and the unit. An empty store stands for all of them.
type place struct{ subject, store, what string }

// reasons say why our library is behind in a row, and what it would take. They
// are written by hand, as sentences in Markdown. The page says of a row that is
// behind and has none that it is not explained yet.
var reasons = map[place]string{}

// notCompared are the cases in which less is not better, and why.
var notCompared = map[place]string{
	{results.Overlap, "", "cut: from the cut until the old leader no longer believes"}:            "it is too late only after the successor",
	{results.Overlap, "", "slow, then cut: from the cut until the old leader no longer believes"}: "it is too late only after the successor",
	{results.Takeover, "", takeoverBounds}:                                                        "it is a range and was not measured",
}

// A deed is what a library does, or does not, in a case.
type deed struct{ subject, what, library string }

// notTheSame are cases in which a peer does less than the case asks for, so that
// less is not better, and why. They are no measure for ours.
var notTheSame = map[deed]string{
	{results.Cost, "resign", "client-go"}: "it tells the store nothing, and a successor waits as after a crash",
}

// takeoverBounds is a case whose two values are bounds, without a median.
const takeoverBounds = "takeover after kill -9, what its rules allow"

// reason returns the reason for a row, empty if there is none.
func reason(r *row) string {
	if why := reasons[place{r.subject, r.store, r.what}]; why != "" {
		return why
	}
	return reasons[place{r.subject, "", r.what}]
}
