// Package azureblob keeps election records in a container of Azure Blob Storage, one
// block blob for each election. It is a module of its own:
//
//	go get github.com/elector-go/elector/backends/azureblob
//
// See docs/stores/azureblob.md for permissions, costs, settings of the account, limits
// and the emulator.
//
// # URLs
//
//	azureblob://account/container/prefix
//	azureblob://account/container?endpoint=https://account.blob.core.chinacloudapi.cn
//
// Parameters:
//
//   - endpoint: the address of the account's Blob service.
//   - readonly: true opens the container for reading alone. Open then reads a blob that
//     no election has, and nothing else. See [backends.OpenReadOnly].
//
// Credentials come from the environment: AZURE_STORAGE_SAS_TOKEN, AZURE_STORAGE_KEY or
// AZURE_STORAGE_CONNECTION_STRING. [New] takes your client instead of a URL, for
// example one with a managed identity.
//
// # Consistency
//
// Linearizable. A change is one Put Blob of the whole blob, with If-Match and the
// ETag that was read, or with If-None-Match: * if there was no blob. The ETag is the
// record's version; the service makes a new one with each write, even of the same
// content. A read is one Get Blob, with the ETag in the header of the same answer.
//
// Every request is sent once. The client library alone would repeat a conditional
// write whose answer was lost, and report that the condition does not hold, because
// its own first try was applied. The elector repeats and reads back, once, for every
// store. For the requests of this package the library's retries are also off with
// your own client.
//
// # Expiry
//
// By the elector's rule alone. Azure's own leases of blobs, the times that the
// service keeps, and lifecycle rules play no part. The service cannot report changes
// in time, so waiters poll.
//
// # Fencing
//
// A leader that is paused after lease.Check can write a blob late. [Write] keeps the
// lease's token in the blob's metadata: a blob with a higher token is not overwritten.
// It works with a lease of any store, in any container, and refuses an old leader once
// a later one has written the blob. A leader that computes what it writes from what it
// reads must therefore call [Claim] first, which puts the token on the blob and reads
// it.
//
// Write reads the properties, compares the tokens, and writes the whole blob on the
// condition that its ETag is the one that was compared; if another write came in
// between, it begins again. Azure's lease of the blob is no substitute: it ends by
// time, and a paused leader whose lease ended is not refused if no other took one.
package azureblob
