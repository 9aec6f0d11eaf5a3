//go:build consul

package cluster

import (
	"testing"

	"github.com/elector-go/elector/internal/proof/stores"
)

func TestConsul(t *testing.T) { onThree(t, stores.Consul) }
