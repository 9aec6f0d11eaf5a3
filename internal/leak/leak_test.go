package leak

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestFindsGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	stop := make(chan struct{})
	go func() { <-stop }()
	if left := settle(before, len(openDescriptors()), 50*time.Millisecond); !strings.Contains(left, "TestFindsGoroutine") {
		t.Errorf("a goroutine that was left behind is not reported: %q", left)
	}
	close(stop)
	if left := settle(before, len(openDescriptors()), 10*time.Second); left != "" {
		t.Errorf("a goroutine that ended is reported: %s", left)
	}
}

func TestFindsDescriptor(t *testing.T) {
	goroutines, descriptors := runtime.NumGoroutine(), len(openDescriptors())
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	left := settle(goroutines, descriptors, 50*time.Millisecond)
	f.Close()
	if descriptors > 0 && !strings.Contains(left, os.DevNull) {
		t.Error("a descriptor that was left open is not reported")
	}
}
