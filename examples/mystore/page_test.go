package mystore_test

import (
	"testing"

	"github.com/elector-go/elector/internal/page"
)

// The code in docs/backend.md is that of this package.
func TestPage(t *testing.T) {
	page.Check(t, "../../docs/backend.md", 3, "mystore.go", "mystore_test.go")
}
