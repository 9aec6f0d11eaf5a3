package elector

import (
	"context"

	"github.com/elector-go/elector/internal/annex"
	"github.com/elector-go/elector/operate"
)

// History implements operate.Operator.
func (o operator) History(ctx context.Context) ([]operate.Term, error) {
	r, err := o.e.recorded(ctx)
	if err != nil {
		return nil, err
	}
	var terms []operate.Term
	for _, t := range annex.HistoryOf(r) {
		terms = append(terms, operate.Term{ID: t.ID, Token: t.Token, Start: t.Start, End: t.End, Reason: t.Reason.String()})
	}
	return terms, nil
}
