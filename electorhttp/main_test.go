package electorhttp_test

import (
	"os"
	"os/signal"
	"testing"

	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) {
	// The first call starts a goroutine for good, which must not be in a bubble.
	none := make(chan os.Signal, 1)
	signal.Notify(none, os.Interrupt)
	signal.Stop(none)
	leak.Main(m)
}
