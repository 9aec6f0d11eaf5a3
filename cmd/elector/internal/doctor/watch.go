package doctor

import (
	"context"

	"github.com/elector-go/elector/backends"
)

// watch looks at whether a Watch reports the change, or only begins if there is
// none.
func (p *patient) watch(ctx context.Context, change func(context.Context) error) {
	// Whatever happens here, the election becomes vacant.
	vacate := func() {
		if change == nil {
			return
		}
		p.doing = "write"
		if err := change(ctx); err != nil {
			p.fails(p.doing, err)
		}
	}
	w, ok := backends.AsWatcher(p.second)
	if !ok {
		vacate()
		p.line("watch", "none: candidates find changes by reading", "", nil)
		return
	}
	watching, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen, ended := make(chan backends.Record, 1), make(chan error, 1)
	go func() {
		ended <- w.Watch(watching, Election, func(r backends.Record) {
			select {
			case <-seen: // an older state
			default:
			}
			seen <- r
		})
	}()
	err := await(seen, ended, func(backends.Record) bool { return true })
	vacate()
	if err == nil && change != nil {
		err = await(seen, ended, func(r backends.Record) bool {
			return r.Attempt == p.record.Attempt || r.Attempt.Nonce != p.record.Attempt.Nonce
		})
	}
	cancel()
	if err != nil {
		p.doubts("watch", err)
		return
	}
	<-ended
	p.line("watch", "candidates learn of changes immediately", "", nil)
}

// await returns when Watch has reported such a state, or its error.
func await(seen <-chan backends.Record, ended <-chan error, such func(backends.Record) bool) error {
	for {
		select {
		case r := <-seen:
			if such(r) {
				return nil
			}
		case err := <-ended:
			return err
		}
	}
}
