package peers

import (
	"context"
	"errors"

	"github.com/elector-go/elector/internal/proof/stores"
)

// Start starts a store for measurements: see [stores.StartDurable]. Candidates reach an
// API server through a server in this process that ends TLS, as kubectl proxy does,
// because nothing can be counted or held back inside TLS.
func Start(ctx context.Context, kind string) (s *stores.Store, stop func() error, err error) {
	s, err = stores.StartDurable(ctx, kind)
	if err != nil {
		return nil, nil, err
	}
	plain, done, err := s.Plainly()
	if err != nil {
		return nil, nil, errors.Join(err, s.Stop())
	}
	return plain, func() error { return errors.Join(done(), s.Stop()) }, nil
}
