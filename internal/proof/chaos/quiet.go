package chaos

import (
	"io"
	stdlog "log"
	"log/slog"
)

// What the campaign's own clients say of a store that was broken on purpose is
// of no interest.
var (
	quiet   = slog.New(slog.DiscardHandler)
	discard = stdlog.New(io.Discard, "", 0)
)
