package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// The linker sets them in the builds of make dist, to the version of the release and
// its commit.
var version, commit string

// A build describes this program in JSON.
type build struct {
	Version string `json:"version"` // of the release or the module; (devel) for a build of a working copy
	Go      string `json:"go"`
	System  string `json:"system"`
	Commit  string `json:"commit"` // empty if it is no release and was not built in a checkout
	Changed bool   `json:"changed"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
	if version != "" {
		b.Version, b.Commit = version, commit
		return b
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

func (t *tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long: `Version prints the version of this program, the Go release and the system that it
was built for, and the commit if it is a release or was built in a checkout.

Fields in JSON: version, go, system, commit, changed (since the commit).`,
		Example: `  elector version
  elector version -o json | jq -r .commit`,
		Args: arguments(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			p, err := t.printer("version", "go", "system", "commit")
			if err != nil {
				return err
			}
			b := thisBuild()
			commit := b.Commit
			if b.Changed {
				commit += " (changed)"
			}
			p.row(b, b.Version, b.Go, b.System, commit)
			return p.flush()
		},
	}
}
