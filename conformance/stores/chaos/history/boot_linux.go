package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// BootTime is the time since the machine was started, suspends included.
// Nobody can set this clock, and it is the same for all processes.
func BootTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // every kernel since 2011 has it
	}
	return time.Duration(t.Nano())
}
