package zookeeper

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/elector-go/elector/backends"
)

// Inspect implements [backends.Inspector]. It compares the session timeout with
// the TTL, and counts the servers.
func (b *Backend) Inspect(ctx context.Context, ttl time.Duration) (backends.Inspection, error) {
	return b.base.Inspect(ctx, func(ctx context.Context) (i backends.Inspection, err error) {
		if b.session > 0 {
			i.Findings = append(i.Findings, b.inspectSession(ttl))
		}
		// Readable by anyone; a server that stands alone may have nothing in it.
		data, err := call(ctx, b, func() ([]byte, error) {
			data, _, err := b.conn.Get("/zookeeper/config")
			return data, err
		})
		if n := strings.Count("\n"+string(data), "\nserver."); err == nil && n > 0 {
			ensemble := backends.Finding{What: "servers", Seen: fmt.Sprintf("%d in the ensemble", n)}
			if n%2 == 0 {
				ensemble.Fix = "add or remove one: an even number survives no more failures than one server less"
			}
			i.Findings = append(i.Findings, ensemble)
		}
		return i, nil
	})
}

// inspectSession looks at the bounds that the package comment gives.
func (b *Backend) inspectSession(ttl time.Duration) backends.Finding {
	f := backends.Finding{What: "session timeout", Seen: fmt.Sprintf("%v asked for (servers give at most maxSessionTimeout, 40 s by default), TTL %v", b.session, ttl)}
	switch hold := ttl - ttl/10; {
	case b.session < hold:
		f.Fix = fmt.Sprintf("set session_timeout to more than %v: a session that ends earlier deposes a leader whose lease still runs", hold)
	case max(b.session/6, time.Second)+hold/3 >= hold:
		f.Fix = fmt.Sprintf("set session_timeout to about %v, twice the TTL: a leader is to outlive a server that goes dark, which is left after a sixth of the session timeout", 2*ttl)
	}
	return f
}
