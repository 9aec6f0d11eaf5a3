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
