//go:build !linux

package clock

import "time"

// bootTime is not known here; a suspend shows on the wall clock.
func bootTime() time.Duration { return 0 }
