// Package azureblob keeps election records in a container of Azure Blob Storage, one
// block blob for each election. It is a module of its own:
//
//	go get github.com/elector-go/elector/backends/azureblob
//
// # URLs
//
//	azureblob://account/container/prefix
//	azureblob://account/container?endpoint=https://account.blob.core.chinacloudapi.cn
//	azureblob://devstoreaccount1/container?endpoint=http://127.0.0.1:10000/devstoreaccount1
//
// An election's blob is the path after the container, a slash, the election's name
// and .json, as in prefix/NAME.json; without such a path it is elector/NAME.json. Its
// content is JSON. There is one parameter:
//
//   - endpoint: the address of the account's Blob service, for a private endpoint,
//     another cloud or an emulator. By default it is
//     https://account.blob.core.windows.net.
//
// Any other parameter is refused, and so are credentials in the URL. They come from
// the environment, the first of:
//
//   - AZURE_STORAGE_SAS_TOKEN: a shared access signature of the account or the
//     container.
//   - AZURE_STORAGE_KEY: a key of the account.
//   - AZURE_STORAGE_CONNECTION_STRING: as the portal shows it, with a key or a
//     signature. It must be of the account in the URL, and has the endpoint itself.
//
// The package reads them once, at Open.
//
// [New] takes your client instead of a URL. It can do what a URL cannot: use a
// managed identity, a workload identity or any other credential of package azidentity.
//
// # Consistency
//
// Linearizable. A change is one Put Blob of the whole blob, with If-Match and the
// ETag that was read, or with If-None-Match: * if there was no blob. The ETag is the
// record's version; the service makes a new one with each write, even of the same
// content. A read is one Get Blob, with the ETag in the header of the same answer.
//
// All requests go to the account's primary region. In a geo-redundant account the
// secondary region lags behind, so an address of it is refused, in a URL and with
// your own client.
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
// Requests use HTTP/1.1, with up to 32 connections for each handle: a connection
// that hangs holds up no other. After a call that got no answer in time, the package
// closes the idle connections, because in a network gone dark they are dead too. A
// client given to New keeps its own connections.
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
//
// # Permissions
//
// The role Storage Blob Data Contributor on a container that is for elections only:
//
//	az role assignment create --role 'Storage Blob Data Contributor' --assignee IDENTITY \
//		--scope /subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/Microsoft.Storage/storageAccounts/ACCOUNT/blobServices/default/containers/CONTAINER
//
// Of this role the package uses the data actions blobs/read and blobs/write, and the
// action containers/read. A signature of the container needs the permissions r and w,
// and l to list elections. To observe, Storage Blob Data Reader or r is enough. Write
// and Claim need r and w for their blob.
//
// With containers/read, which a signature of the container cannot grant, Open refuses
// a container with an immutability policy or a legal hold. There a blob can be written
// once and not again: a candidate could win and never renew. Without that permission
// the first renewal shows it.
//
// # Limits
//
// The TTL is at least 1 s. The service takes 500 requests a second of one blob and
// 20,000 or more of one account.
//
// A failover of a geo-redundant account to its secondary region loses the writes of
// the last minutes. Records go back with it: the leader loses its lease, and the next
// winner's token rests on the clocks alone. Stop the candidates before you fail an
// account over. An account for elections is best zone-redundant (ZRS), which fails
// over without loss.
//
// A backup or an administrator may hold one of Azure's leases on a record's blob. The
// service then refuses every write of it, which is
// ErrReadOnly: the leader loses its lease, and no process leads until that lease ends
// or is broken. An immutable blob is ErrMisconfigured.
//
// Each renewal is a write operation and each read a read operation. With the default
// TTL of 15 s an election makes 19,200 renewals a day, which cost about 0.10 dollars
// at 0.05 dollars per 10,000; a waiter reads about as often, for a tenth of that. Use
// the access tier Hot.
//
// Soft delete of blobs, which the portal switches on for new accounts, keeps what each
// renewal overwrites, and so does versioning: 19,200 copies a day for each election.
// Both are settings of the account. Switch them off in one that is for elections only:
//
//	az storage account blob-service-properties update --account-name ACCOUNT \
//		--enable-delete-retention false --enable-versioning false
//
// A lifecycle rule that matches the prefix may delete or archive records. A record
// that vanishes counts as held for its TTL, but the next winner's token then rests on
// the clocks alone. An archived one is ErrMisconfigured. Customer-provided keys are not
// supported; customer-managed keys are.
//
// An operator reads the records with
//
//	az storage blob download --account-name ACCOUNT --container-name CONTAINER --name elector/NAME.json
//
// An empty holder is a vacancy. The record of a leader that died keeps its holder
// until another candidate takes over. To depose a leader, stop it. Do not delete blobs
// of elections in use. Undeleting a blob or restoring a container to an earlier time is
// a loss of acknowledged writes: stop the candidates first.
//
// Tested with Azurite 3.37.0, Microsoft's emulator, and azblob 1.3.2 and 1.7.0.
// Azurite differs from the service in these points; the package relies on none of
// them:
//
//	                       the service            the emulator
//	after a crash          as acknowledged        as it was up to 5 s before
//	immutability policies  409 on overwriting     none
//	conditions and leases  in the order of        ETag first
//	                       its own
//	throttling             503 ServerBusy         never
//	roles                  403                    with keys and SAS only
//	secondary region       lags behind            none
//
// What the emulator cannot show is tested against answers as the service documents
// them. The comment of TestAzureBlob in internal/proof/stores explains how to run the
// suite on a container of the real service.
package azureblob
