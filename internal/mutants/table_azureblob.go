package main

func init() {
	const module = "backends/azureblob"
	for _, m := range azureblobMutants {
		m.pkg, m.module = ".", module
		for i := range m.edits {
			m.edits[i].File = module + "/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

var azureblobMutants = []mutant{
	{name: "a blob's token looked for in one case", breaks: "Fencing", catch: "a_higher_token", parent: "TestFence", edits: []edit{{
		"fence.go", `s.fence[strings.ToLower(key)]`, `s.fence[key]`}}},
	{name: "a blob written without its ETag", breaks: "Fencing", catch: "a_later_leader", parent: "TestFenceInBetween", edits: []edit{{
		"fence.go", `ModifiedAccessConditions: condition}
		_, err := client.Upload`, `ModifiedAccessConditions: unchanged("\"0x2\"")}
		_, err := client.Upload`}}},
	{name: "a leased blob a conflict", breaks: "Errors", catch: "Open,_a_lease", parent: "TestRefusedWrites", edits: []edit{{
		"azureblob.go", `bloberror.HasCode(err, bloberror.ConditionNotMet, `, `bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.LeaseIDMissing, `}}},
	{name: "an immutable blob a conflict", breaks: "Errors", catch: "Open,_an_immutable_blob", parent: "TestRefusedWrites", edits: []edit{{
		"azureblob.go", `return bloberror.HasCode(err, bloberror.ConditionNotMet, `, `return status(err) == 409 || bloberror.HasCode(err, bloberror.ConditionNotMet, `}}},
	{name: "a proxy's 404 no record on Azure", breaks: "Errors", catch: "Open,_a_404_of_a_proxy", parent: "TestMissing", edits: []edit{{
		"azureblob.go", `if bloberror.HasCode(err, bloberror.BlobNotFound) {`, `if status(err) == 404 {`}}},
	{name: "a write that azblob repeats", breaks: "Swap", catch: "503,_New", parent: "TestNothingIsSentTwice", edits: []edit{{
		"azureblob.go", `policy.RetryOptions{MaxRetries: -1})`, `policy.RetryOptions{})`}}},
	{name: "a write of Azure that follows redirects", breaks: "Swap", catch: "307,_Open", parent: "TestNothingIsSentTwice", edits: []edit{{
		"open.go", `func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }`, `nil`}}},
	{name: "a condition that holds for every state of a blob", breaks: "Swap", catch: "any", parent: "TestNoTag", edits: []edit{{
		"azureblob.go", `tag == nil || !entity.MatchString(string(*tag))`, `tag == nil`}}},
	{name: "a read of the secondary region", breaks: "Load", catch: "with_a_client", parent: "TestSecondary", edits: []edit{{
		"azureblob.go", `if b.secondary {`, `if false {`}}},
	{name: "a signature in an error", breaks: "Errors", catch: "a_signature", parent: "TestCredentials", edits: []edit{{
		"errors.go", `failed.URL, _, _ = strings.Cut(failed.URL, "?")`, `_ = failed.URL`}}},
}
