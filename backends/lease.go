package backends

import "time"

// A Lease is a lease, as guards and fences see it: an *elector.Lease, or a
// *partition.Lease.
type Lease interface {
	// Acquisition returns the acquisition while the lease is valid. Otherwise
	// it returns why the lease is over.
	Acquisition() (Acquisition, error)
}

// An Acquisition is what a guard compares with the record in the store.
type Acquisition struct {
	Backend   Backend // through which it was made
	Election  string
	Record    Record        // the state that acquired; renewals change its value, sequence, extensions and Version
	Remaining time.Duration // for which the lease is valid without another renewal
}

// As returns b as a backend of type B. It looks through values that have a method
// Unwrap() Backend.
func As[B Backend](b Backend) (B, bool) {
	for {
		if found, ok := b.(B); ok {
			return found, true
		}
		wrapper, ok := b.(interface{ Unwrap() Backend })
		if !ok {
			var none B
			return none, false
		}
		b = wrapper.Unwrap()
	}
}

// A SQLGuarder is a Backend whose records are rows of a SQL database. Package fencesql
// guards transactions in that database with it. Implementing it is optional.
type SQLGuarder interface {
	Backend

	// SQLGuard returns the guard of an acquisition through this backend. It reports
	// false if the table cannot have one. It does no I/O.
	SQLGuard(Acquisition) (SQLGuard, bool)
}

// A SQLGuard is a query for a transaction that must not be committed under an
// acquisition that is over.
type SQLGuard struct {
	Dialect string // of the query: PostgreSQL or MySQL

	// Query returns one number. It is 1 if the transaction's database has the record of
	// the acquisition; then no other acquisition succeeds before the transaction ends,
	// and renewals do. It is 0 if the database has no record of the election, or
	// that of another acquisition. It is 2 if the server is one where the query keeps no
	// other acquisition out; nothing must be committed then.
	Query string
	Args  []any

	// Absent reports whether an error of Query means that the transaction's database
	// has no such table, or that its user has no right to it: there is nothing to
	// compare with.
	Absent func(error) bool
}
