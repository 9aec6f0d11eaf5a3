package conformance

import (
	"context"
	"path"
	"strings"

	"github.com/elector-go/elector/backends"
)

var nameMutants = map[string]mutant{
	"names in lower case":  {caughtBy: "bad/name", rule: "names that differ in case alone are two elections", handle: renames(strings.ToLower)},
	"names are cut at NUL": {caughtBy: "bad/name", rule: "is ErrName", handle: renames(func(name string) string { name, _, _ = strings.Cut(name, "\x00"); return name })},
	"names are trimmed":    {caughtBy: "bad/name", rule: "is ErrName", handle: renames(strings.TrimSpace)},
	"names end at a dot": {caughtBy: "bad/name", rule: "elections with similar names have separate records",
		handle: renames(func(name string) string { name, _, _ = strings.Cut(name, "."); return name })},
	"names are cut": {caughtBy: "bad/name", rule: "elections with similar names have separate records",
		handle: renames(func(name string) string { return name[:min(len(name), backends.MaxName-1)] })},
	"a name is a path": {caughtBy: "bad/name", rule: "is ErrName", handle: renames(path.Base)},
	"Watch takes any name": {caughtBy: "bad/name", rule: "ends immediately with: unusable election name", handle: func(b *broken, _ *state) {
		b.watch = func(ctx context.Context, name string, changed func(backends.Record)) error {
			if backends.CheckName(name) != nil {
				changed(backends.Record{})
			}
			return b.Backend.Watch(ctx, name, changed)
		}
	}},
}
