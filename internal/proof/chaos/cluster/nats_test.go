//go:build nats

package cluster

import (
	"testing"

	"github.com/elector-go/elector/internal/proof/stores"
)

func TestNATS(t *testing.T) { onThree(t, stores.NATS) }
