//go:build consul

package chaos

import "github.com/elector-go/elector/internal/proof/stores"

func init() { places = []string{stores.Consul, stores.Consul + Nodes} }
