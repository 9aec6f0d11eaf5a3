// Package dynamodb keeps election records in an Amazon DynamoDB table, one item
// for each election.
//
// # URLs
//
//	dynamodb://TABLE?region=eu-central-1
//
// Parameters:
//
//   - region: the table's region. Without it the AWS SDK's own settings count,
//     AWS_REGION say.
//   - endpoint: an http or https URL to send requests to instead of the
//     region's, for an emulator or a private endpoint.
//   - create: whether to create the table, billed on demand, if it is missing;
//     false by default. Open then blocks until the table is active, for up to
//     2 min if its context has no deadline.
//   - single_region: write true to use an eventually consistent global table,
//     see Consistency; false by default.
//
// Any other parameter is refused. Credentials are those that the AWS SDK finds:
// environment, shared files and profiles, web identity, the role of the
// container or machine. There is no place for them in the URL. The SDK's other
// settings, AWS_CA_BUNDLE and AWS_PROFILE say, hold too.
//
// [New] takes a client of yours instead of a URL.
//
// The table's only key is the partition key "election", a string with the
// election's name; the string "record" is the record as JSON. To make it:
//
//	aws dynamodb create-table --region eu-central-1 --table-name elector \
//		--billing-mode PAY_PER_REQUEST \
//		--attribute-definitions AttributeName=election,AttributeType=S \
//		--key-schema AttributeName=election,KeyType=HASH
//
// An item without such a string is foreign, and is left alone. What else
// somebody adds to an item of ours is not looked at, and goes with the next
// write.
//
// # Consistency
//
// A change is one PutItem on the condition that "record" is still the very
// text that was read, or that there is no such item. A read is one GetItem with
// ConsistentRead; no index and no cache is ever asked, and a DAX cluster must
// not stand in between.
//
// Every request for a record is sent once, whatever the client's policy: a
// conditional write that the SDK repeats after a lost answer fails because its
// first try succeeded. The elector tries again, and reads back before it does.
// What the failed condition found is not asked for either: the elector reads
// after a conflict anyhow.
//
// An eventually consistent global table accepts conflicting conditional writes
// in two regions and drops one of them later: two leaders. It is refused,
// whichever version of global tables it is, unless the URL says
// single_region=true. That is a promise that every candidate and observer, and
// everybody they fail over to, names the same region; nothing can check it. A
// table with multi-region strong consistency is used as it is: its conditions
// and consistent reads go by the latest version of an item in all regions. This
// rests on Amazon's word alone: no emulator has such tables.
//
// # Expiry
//
// By the elector's rule alone, and never by DynamoDB's time to live, which
// deletes days later. A table that has it switched on, for whatever attribute,
// is refused when it is opened: our items carry no such attribute, but it would
// need no more than one edit by hand to delete an election's record and with it
// the last token, and this table is for nothing else.
//
// There is no Watch: waiters and observers read.
//
// # Permissions
//
// The smallest policy; put in region, account and table:
//
//	{
//		"Version": "2012-10-17",
//		"Statement": [{
//			"Effect": "Allow",
//			"Action": ["dynamodb:GetItem", "dynamodb:PutItem"],
//			"Resource": "arn:aws:dynamodb:eu-central-1:123456789012:table/elector"
//		}, {
//			"Effect": "Allow",
//			"Action": ["dynamodb:DescribeTable", "dynamodb:DescribeTimeToLive"],
//			"Resource": "arn:aws:dynamodb:eu-central-1:123456789012:table/elector"
//		}]
//	}
//
// The second statement is for Open and New, which look whether the table is one
// that can elect a single leader. They cannot do without. To restrict a service
// to its own elections, add to the first statement
//
//	"Condition": {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["invoice-sender"]}}
//
// To observe, GetItem is enough of the first. For create=true, add
// dynamodb:CreateTable to the second. A table with a stream of new and old
// images may be a global table of the version of 2017, which only
// dynamodb:DescribeGlobalTable tells, on
// arn:aws:dynamodb::123456789012:global-table/elector; with single_region=true
// that is not asked.
//
// # Limits
//
// The shortest TTL is 1 s: it leaves a request 150 ms. DynamoDB answers within
// some milliseconds, but over a new connection, with its TLS handshake, it takes
// several times the way there and back.
//
// A renewal is one write unit as long as the item stays below 1 kB, and a
// waiter's read one read unit below 4 kB; holder and value, of up to 4 kB each,
// are what can be long in it. With the default TTL of 15 s, that is about
// 580,000 writes a month for an election that is held, and as many reads for
// each waiter. A table whose provisioned capacity is too small throttles; a
// throttled renewal is tried again, and the lease lasts until its end at most.
//
// A handle has at most 64 connections; further requests wait. They speak
// HTTP/1.1, so that one connection gone dark holds up one request, and after a
// request without an answer no idle connection is used again.
//
// A clock that is wrong by minutes makes DynamoDB refuse signatures. That may
// pass: the SDK learns the difference from the answer. Credentials that have
// expired may pass if the SDK can fetch others, and not if they came from the
// environment.
//
// An operator reads the records with
//
//	aws dynamodb scan --consistent-read --region eu-central-1 --table-name elector
//
// An empty holder is a vacancy. Records of leaders that died keep their holder
// until somebody takes over. To depose a leader, stop it. Do not delete items of
// elections in use: the next winner's token then rests on the clocks alone; the
// table's deletion protection guards against losing them all. Restoring a
// backup is a loss of acknowledged writes: stop the candidates first.
//
// Tested with dynalite 4, an emulator. Emulators differ from the service, DynamoDB
// Local by its documentation, and nothing here relies on what they do otherwise:
//
//	                                 service    dynalite   DynamoDB Local
//	credentials and permissions      checked    ignored    ignored
//	regions                          apart      one        one with -sharedDb
//	too many requests                throttled  taken      taken
//	global tables                    yes        no         no
//	time to live                     yes        always off yes
//	what a failed condition found    on demand  no         on demand
//	a new table can be used          later      later      at once
//
// What only the service does is tested against answers made by hand.
package dynamodb
