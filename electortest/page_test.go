package electortest_test

import (
	"testing"

	"github.com/elector-go/elector/internal/page"
)

// The code in docs/testing.md is that of tests that run.
func TestPage(t *testing.T) {
	page.Check(t, "../docs/testing.md", 8, "sender_test.go", "consumer_test.go")
}
