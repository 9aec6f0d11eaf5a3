package conformance

// backendCases run against the backend alone (B in the list of cases).
var backendCases = []testCase{}
