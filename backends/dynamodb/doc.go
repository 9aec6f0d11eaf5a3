// Package dynamodb keeps election records in an Amazon DynamoDB table, one item
// for each election. See docs/stores/dynamodb.md for permissions, costs, settings of
// the table, limits and emulators.
//
// # URLs
//
//	dynamodb://TABLE?region=eu-central-1
//
// Parameters:
//
//   - region: the table's region.
//   - endpoint: an http or https URL to send requests to instead of the
//     region's.
//   - create: whether to create a missing table, billed on demand; false by
//     default.
//   - single_region: true allows an eventually consistent global table, see
//     Consistency; false by default.
//   - readonly: true opens the table for reading alone; false by default. Open then
//     reads an item that no election has, creates nothing, and needs no right to write
//     or to describe the table. See [backends.OpenReadOnly].
//
// The AWS SDK finds the credentials. [New] takes your client instead of a URL.
//
// # Consistency
//
// A change is one PutItem on the condition that "record" is still exactly the
// text that was read, or that the item does not exist. A read is one GetItem
// with ConsistentRead. No index and no cache is used. Waiters and observers of many
// elections in one process read up to 100 items by one BatchGetItem, also with
// ConsistentRead; a key that the service leaves unprocessed is an error.
//
// Every request for a record is sent once, whatever the client's policy is: a
// conditional write that the SDK repeats after a lost answer fails because its
// first try succeeded. The elector tries again, and reads back first. A failed
// condition does not return the item: the elector reads after a conflict anyway.
//
// An eventually consistent global table accepts conflicting conditional writes
// in two regions and drops one of them later: two leaders. It is refused,
// whatever its version, unless the URL has single_region=true. With that you
// promise that every candidate and observer, also after a failover, uses the
// same region; nothing can check it.
//
// # Expiry
//
// By the elector's rule alone, never by DynamoDB's time to live, which deletes
// days later. Open and New refuse a table that has it switched on.
//
// There is no Watch: waiters and observers read.
//
// # Fencing
//
// A leader that is paused after lease.Check can write late. The table with the data
// can refuse that, in two ways.
//
// [Put] writes a single item and keeps the lease's token in it: an item with a
// higher token is not overwritten. It takes no further request, works with a lease
// of any store, and refuses an old leader once a later one has put the same item. A
// leader that computes an item from what it reads must therefore first put back what
// it has read, on the condition that it has not changed.
//
// [Claim] and [Term.Write] fence transactions, on any items: Claim writes the
// lease's nonce to the item ELECTION/term of the election's table, once in a lease,
// and each transaction checks it. It refuses an old leader once a later one has
// claimed. The data must be in the account and the region of the election.
//
// Amazon refuses a transaction, or a write, that meets another transaction on one
// of its items. It does not document whether two condition checks of an item
// conflict. So the writes of a Term take turns, and Claim is repeated, as often as
// the client's retry policy allows, while an older leader's transactions hold it up.
// Do not check the election's own item in a transaction: renewals would fail.
package dynamodb
