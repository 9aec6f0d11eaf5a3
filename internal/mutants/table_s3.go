package main

func init() {
	const module = "backends/s3"
	for _, m := range s3Mutants {
		m.pkg, m.module = ".", module
		for i := range m.edits {
			m.edits[i].File = module + "/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// s3Mutants are the known ways to let two candidates win on S3, or a late write pass.
var s3Mutants = []mutant{
	{name: "S3: servers that ignore conditions", breaks: "Open", catch: "conditions_ignored", parent: "TestOpen", edits: []edit{{
		"open.go", `err := b.probe(ctx)`, `err := error(nil)`}}},
	{name: "S3: servers that ignore If-Match alone", breaks: "Open", catch: "If-Match_ignored", parent: "TestOpen", edits: []edit{{
		"s3.go", `	if !changed {`, `	if !changed && false {`}}},
	{name: "S3: a server that compares and writes in two steps", breaks: "Open", catch: "compares_and_writes_in_two_steps", parent: "TestRace", edits: []edit{{
		"alike.go", `if winners > 1 {`, `if winners > rivals {`}}},
	{name: "S3: a server whose reads lag", breaks: "Open", catch: "reads_from_a_replica_that_lags", parent: "TestRace", edits: []edit{{
		"alike.go", `&& winners == 1 && etag == before`, `&& winners > 1 && etag == before`}}},
	{name: "S3: every server taken for Amazon's", breaks: "Open", catch: "TestAmazon", edits: []edit{{
		"alike.go", `if strings.HasSuffix(host, domain) {`, `if strings.HasSuffix(host, domain) || true {`}}},
	{name: "S3: writes before the probe", breaks: "Swap", catch: "TestUnproven", edits: []edit{{
		"s3.go", `if !b.proven.Load() {
			if err`, `if false {
			if err`}}},
	{name: "S3: a torn read taken for a record", breaks: "Load", catch: "TestTornReads", edits: []edit{{
		"s3.go", `torn(o, content)`, `false`}}},
	{name: "S3: a missing bucket taken for a missing record", breaks: "Load", catch: "TestMissing", edits: []edit{{
		"s3.go", `case awsclient.Code(err) == noSuchKey:`, `case status(err) == 404:`}}},
	{name: "S3: a write without a condition", breaks: "Swap", catch: "TestRecordIsOneObject", edits: []edit{{
		"s3.go", `	if etag == "" {
		in.IfNoneMatch`, `	if etag == "" && false {
		in.IfNoneMatch`}}},
	{name: "S3: the client's retries", breaks: "Swap", catch: "TestNothingIsSentTwice", edits: []edit{{
		"s3.go", `	o.Retryer = aws.NopRetryer{}
`, ``}}},
	{name: "S3: a token beside the content", breaks: "Fencing", catch: "a_later_leader,_with_what_was_there", parent: "TestFenceInBetween", edits: []edit{{
		"fence.go", `	w.Comment = fmt`, `	_ = fmt`}}},
	{name: "S3: a guarded write without a condition", breaks: "Fencing", catch: "a_later_leader", parent: "TestFenceInBetween", edits: []edit{{
		"fence.go", `	condition(in, etag)
`, `	in.IfNoneMatch = aws.String("x")
`}}},
}
