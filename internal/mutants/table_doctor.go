package main

func init() {
	const module = "cmd/elector"
	for _, m := range doctorMutants {
		m.pkg, m.module = "./internal/doctor", module
		for i := range m.edits {
			m.edits[i].File = module + "/internal/doctor/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// doctorMutants are the known ways for the doctor to name a wrong cause, or none.
var doctorMutants = []mutant{
	{name: "a doctor that takes any conflict for another process", breaks: "causes", catch: "TestCauses", edits: []edit{{
		"judge.go", `	switch {
	case err != nil:
		return err
	case r.Attempt == next.Attempt:`, `	switch {
	case err != nil:
		return err
	case true:
		return busy{r}
	case r.Attempt == next.Attempt:`}}},
	{name: "a doctor that does not compare the hosts", breaks: "causes", catch: "TestTwoStores", edits: []edit{{
		"hosts.go", `	if len(all) < 2 {`, `	if len(all) < 200 {`}}},
	{name: "a doctor that forgets what it has read", breaks: "causes", catch: "TestTwoStores", edits: []edit{{
		"judge.go", `	return at < len(d.shown)-1`, `	return false`}}},
	{name: "a doctor that takes a record of another store for another process", breaks: "causes", catch: "TestTwoStores", edits: []edit{{
		"judge.go", `	case still.Attempt == p.record.Attempt:`, `	case still.Attempt == p.record.Attempt && false:`}}},
	{name: "a doctor that excuses stale reads on every store", breaks: "causes", catch: "TestCauses", edits: []edit{{
		"patient.go", `	if p.late == "" || p.behind {`, `	if p.behind {`}}},
	{name: "a doctor that excuses reads that stay stale", breaks: "causes", catch: "TestCauses", edits: []edit{{
		"patient.go", `	case p.behind:`, `	case p.behind && p.late == "":`}}},
	{name: "a doctor that takes a late read for a replica's", breaks: "causes", catch: "TestCauses", edits: []edit{{
		"patient.go", `p.behind = p.behind || p.stale(r)`, `p.behind = true`}}},
	{name: "a doctor that takes a late read for a second store", breaks: "causes", catch: "TestCauses", edits: []edit{{
		"judge.go", `	if err == nil {
		still, err = p.again(`, `	if false {
		still, err = p.again(`}}},
}
