//go:build unix

package door

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Pause stops this process, as a long pause of the machine would, until it is
// continued.
func Pause() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	fmt.Printf("has checked its lease; stops until you run kill -CONT %d\n", os.Getpid())
	syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	<-continued // a signal takes a moment to arrive
}
