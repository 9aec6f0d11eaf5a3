package history

import (
	"time"

	"github.com/elector-go/elector/internal/clock"
)

// BootTime is the time since the machine was started, suspends included.
// No process can set this clock, and it is the same for all processes. Where there
// is none it is the time of day: do not set that during a campaign.
func BootTime() time.Duration { return clock.Shared() }
