// Package dynamodb keeps election records in an Amazon DynamoDB table, one item
// for each election.
//
// # URLs
//
//	dynamodb://TABLE?region=eu-central-1
//
// Parameters:
//
//   - region: the table's region; by default that of the AWS SDK's settings,
//     for example AWS_REGION.
//   - endpoint: an http or https URL to send requests to instead of the
//     region's, for an emulator or a private endpoint.
//   - create: whether to create a missing table, billed on demand; false by
//     default. Open then blocks until the table is active, for up to 2 min if
//     its context has no deadline.
//   - single_region: true allows an eventually consistent global table, see
//     Consistency; false by default.
//
// Any other parameter is refused. The AWS SDK finds the credentials: in the
// environment, in shared files and profiles, by web identity, or by the role of
// the container or machine. The URL cannot hold them. The SDK's other settings,
// such as AWS_CA_BUNDLE and AWS_PROFILE, apply too.
//
// [New] takes your client instead of a URL.
//
// The table's only key is the partition key "election", a string with the
// election's name; the string "record" is the record as JSON. To create it:
//
//	aws dynamodb create-table --region eu-central-1 --table-name elector \
//		--billing-mode PAY_PER_REQUEST \
//		--attribute-definitions AttributeName=election,AttributeType=S \
//		--key-schema AttributeName=election,KeyType=HASH
//
// An item without that string is foreign, and is left alone. Other attributes
// of an item are ignored, and the next write removes them.
//
// # Consistency
//
// A change is one PutItem on the condition that "record" is still exactly the
// text that was read, or that the item does not exist. A read is one GetItem
// with ConsistentRead. No index and no cache is used; do not put a DAX cluster
// in between. Waiters and observers of many elections in one process read up to 100
// items by one BatchGetItem, also with ConsistentRead; a key that the service leaves
// unprocessed is an error.
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
// same region; nothing can check it. A table with multi-region strong
// consistency is accepted: its conditions and consistent reads see the latest
// version of an item in all regions. For this we have only Amazon's word: no
// emulator has such tables.
//
// # Expiry
//
// By the elector's rule alone, never by DynamoDB's time to live, which deletes
// days later. Open and New refuse a table that has it switched on, for any
// attribute: our items have no such attribute, but a single edit by hand would
// delete an election's record, and with it the last token. The table is for
// elections only.
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
//
// # Permissions
//
// The smallest policy; put in region, account and table:
//
//	{
//		"Version": "2012-10-17",
//		"Statement": [{
//			"Effect": "Allow",
//			"Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem"],
//			"Resource": "arn:aws:dynamodb:eu-central-1:123456789012:table/elector"
//		}, {
//			"Effect": "Allow",
//			"Action": ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"],
//			"Resource": "arn:aws:dynamodb:eu-central-1:123456789012:table/elector"
//		}]
//	}
//
// The second statement is for Open and New, which check that the table can elect
// a single leader, and need it. To restrict a service to its own elections, add
// to the first statement
//
//	"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["invoice-sender", "invoice-sender/term"]}}
//
// The second key is for Claim. The client of Term.Write needs
// dynamodb:ConditionCheckItem on the election's table, and the permissions for its
// own items; Put needs dynamodb:PutItem on the item's table.
//
// An observer needs only GetItem and BatchGetItem of the first. Without BatchGetItem
// each read is a request of its own, and some requests are refused first. To list the elections, add
// dynamodb:Scan to the first, without the condition. For create=true, add
// dynamodb:CreateTable to the second. A table with a stream of new and old
// images may be a global table of version 2017, which only
// dynamodb:DescribeGlobalTable shows, on
// arn:aws:dynamodb::123456789012:global-table/elector; single_region=true makes
// that unnecessary.
//
// # Limits
//
// The shortest TTL is 1 s, which leaves a request 150 ms. DynamoDB answers within
// milliseconds, but a new connection, with its TLS handshake, takes several
// round trips.
//
// A renewal costs one write unit if the item is below 1 kB, and a waiter's read
// one read unit below 4 kB; holder and value, of up to 4 kB each, are the long
// parts. The history takes at most 512 bytes, so that an item with an ordinary
// name, ID and value, of 300 bytes together, stays below 1 kB. With the default TTL of 15 s, that is about 580,000 writes a month for
// an election that is held, and as many reads for each waiter. A table with too
// little provisioned capacity throttles; a throttled renewal is tried again
// until the lease ends.
//
// A handle has at most 64 connections; further requests wait. They use HTTP/1.1,
// so that a dead connection blocks one request only, and after a request without
// an answer no idle connection is used again.
//
// When a clock is wrong by minutes, DynamoDB refuses signatures. That may pass:
// the SDK learns the difference from the answer. Expired credentials may pass if
// the SDK can fetch new ones, but not if they came from the environment.
//
// An operator reads the records with
//
//	aws dynamodb scan --consistent-read --region eu-central-1 --table-name elector
//
// Items without a record, whose key ends in /term, are those of Claim. An empty
// holder is a vacancy. The record of a dead leader keeps its holder
// until another candidate takes over. To depose a leader, stop it. Do not delete
// items of elections in use: the next winner's token then depends on the clocks
// alone. The table's deletion protection guards against losing them all.
// Restoring a backup loses acknowledged writes: stop the candidates first.
//
// Tested with dynalite 4, an emulator. Emulators differ from the service, and
// this package relies on none of the differences. DynamoDB Local is described by
// its documentation:
//
//	                                 service    dynalite   DynamoDB Local
//	credentials and permissions      checked    ignored    ignored
//	regions                          apart      one        one with -sharedDb
//	too many requests                throttled  taken      taken
//	global tables                    yes        no         no
//	time to live                     yes        always off yes
//	what a failed condition found    on demand  no         on demand
//	a new table can be used          later      later      at once
//	transactions                     yes        no         yes
//
// Tests of what only the service does use answers written by hand. Fenced
// transactions were tested with dynalite and an emulator of transactions before it.
package dynamodb
