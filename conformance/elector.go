package conformance

// electorCases run against the elector over the backend (E in the list of
// cases).
var electorCases = []testCase{}
