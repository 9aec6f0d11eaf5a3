package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (t *tool) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  arguments(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			version := "unknown"
			if info, ok := debug.ReadBuildInfo(); ok {
				version = info.Main.Version
			}
			_, err := fmt.Fprintln(t.out, version)
			return err
		},
	}
}
