//go:build !linux

package history

import "time"

// BootTime is the time of day: a clock that all processes of the machine share.
// Do not set it during a campaign.
func BootTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
