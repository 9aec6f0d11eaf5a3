package main

func init() {
	for _, m := range distMutants {
		m.pkg, m.breaks = "./internal/dist", "dist"
		for i := range m.edits {
			m.edits[i].File = "internal/dist/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// distMutants are the known ways to release what cannot be built again, or something else.
// make release-check has more, as whole builds.
var distMutants = []mutant{
	{name: "an archive has the time of its making", catch: "TestTarball", edits: []edit{{
		"archive.go", `ModTime: at,`, `ModTime: time.Now(),`}}},
	{name: "an archive has its files in any order", catch: "TestTarball", edits: []edit{{
		"archive.go", `slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })`, `_ = cmp.Compare(path.Dir("a"), "b")`}}},
	{name: "a tag of another module is the version", catch: "TestIdentify", edits: []edit{{
		"build.go", `, "--match", "v*")`, `)`}}},
	{name: "a changed tree is released", catch: "TestIdentify", edits: []edit{{
		"build.go", `case version != "" && changed != "":`, `case false:`}}},
	{name: "a bill with the checksum of the tool's build", catch: "TestSettle", edits: []edit{{
		"bill.go", `delete(v, "hashes")`, `delete(v, "none")`}}},
	{name: "a pre-release replaces its release", catch: "TestDebianVersion", edits: []edit{{
		"debian.go", `return parts[1] + "~"`, `return parts[1] + "+"`}}},
}
