package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the manual, for packagers.
func (t *tool) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write a man page for each command into a directory",
		Hidden: true,
		Args:   arguments(1, "a directory"),
		RunE: func(c *cobra.Command, args []string) error {
			root := t.root()
			root.DisableAutoGenTag = true
			return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "elector"}, args[0])
		},
	}
}
