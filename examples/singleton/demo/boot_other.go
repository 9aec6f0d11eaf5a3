//go:build !linux

package demo

import "time"

// bootTime is the time of day: a clock that all processes of the machine share.
// Do not set it while the demo runs.
func bootTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
