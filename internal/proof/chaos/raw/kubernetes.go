package raw

import (
	"bytes"
	"context"

	"github.com/elector-go/elector/internal/proof/stores"
)

// A kubernetesRecords has a Lease for each record.
type kubernetesRecords struct {
	JSON
	store *stores.Store
}

func (r kubernetesRecords) Get(ctx context.Context, election string) ([]byte, error) {
	l, err := r.store.Lease(ctx, election)
	return l.Record(), err
}

func (r kubernetesRecords) Put(ctx context.Context, election string, content []byte) error {
	for {
		l, err := r.store.Lease(ctx, election)
		if err != nil {
			return err
		}
		if l == nil {
			l = stores.Lease{}
		}
		l.SetRecord(content)
		if done, err := r.store.PutLease(ctx, election, l); done || err != nil {
			return err
		}
	}
}

func (r kubernetesRecords) Replace(ctx context.Context, election string, old, content []byte) (bool, error) {
	l, err := r.store.Lease(ctx, election)
	if err != nil || l == nil || !bytes.Equal(l.Record(), old) {
		return false, err
	}
	l.SetRecord(content)
	return r.store.PutLease(ctx, election, l)
}

func (r kubernetesRecords) Delete(ctx context.Context, election string) error {
	return r.store.DeleteLease(ctx, election)
}
