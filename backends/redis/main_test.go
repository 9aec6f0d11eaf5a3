package redis

import (
	"testing"

	"github.com/elector-go/elector/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
