package main

func init() { mutants = append(mutants, readingMutants...) }

// readingMutants make handles that are opened for reading alone need more than that.
var readingMutants = []mutant{
	{name: "a campaign on a handle that only reads", breaks: "Open", catch: "TestReadOnly", pkg: ".", edits: []edit{{
		"calls.go", `if e.refusal != nil {`, `if e.refusal != nil && e == nil {`}}},
	{name: "a handle that only reads writes", breaks: "Open", catch: "TestReadOnly", pkg: ".", edits: []edit{{
		"backends/base.go", `	if h.readOnly {
		write = func`, `	if h == nil {
		write = func`}}},
	{name: "a handle of files that only reads writes a probe", breaks: "Open", catch: "TestReaderOfAnotherUser", pkg: "./backends/file", edits: []edit{{
		"backends/file/disk.go", `if how == reading {`, `if false {`}}},
	{name: "a handle of PostgreSQL that only reads wants a server that takes writes", breaks: "Open", catch: "TestParse", pkg: "./backends/postgres", edits: []edit{{
		"backends/postgres/open.go", `	if !readOnly {
		c.Validate`, `	if c != nil {
		c.Validate`}}},
	{name: "a handle of MySQL that only reads refuses a replica", breaks: "Open", catch: "a_replica,_to_read_alone", parent: "TestSettle", module: "backends/mysql", pkg: ".", edits: []edit{{
		"backends/mysql/connect.go", `	case b.options.ReadOnly:
`, `	case false:
`}}},
	{name: "a handle of S3 that only reads probes", breaks: "Open", catch: "TestReadOnly", pkg: ".", module: "backends/s3", edits: []edit{{
		"backends/s3/open.go", `if b.base.ReadOnly() {`, `if false {`}}},
	{name: "a handle of DynamoDB that only reads makes the table", breaks: "Open", catch: "TestReadOnlyRefuses", pkg: "./backends/dynamodb", edits: []edit{{
		"backends/dynamodb/open.go", `if o.ReadOnly {`, `if false {`}}},
	{name: "a handle of Cloud Storage that only reads has a token to write", breaks: "Open", catch: "TestReadOnlyScope", pkg: "./backends/gcs", edits: []edit{{
		"backends/gcs/open.go", `if c.readOnly {`, `if false {`}}},
	{name: "a handle of Azure that only reads asks for the container", breaks: "Open", catch: "TestReadOnly", pkg: ".", module: "backends/azureblob", edits: []edit{{
		"backends/azureblob/open.go", `if !b.base.ReadOnly() {`, `if true {`}}},
	{name: "a handle of Kubernetes that only reads asks for all rights", breaks: "Open", catch: "TestReadOnly", pkg: "./backends/kubernetes", edits: []edit{{
		"backends/kubernetes/open.go", `if b.base.ReadOnly() {`, `if false {`}}},
}
