// Package cli is the command elector.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
)

// Main runs the command with the arguments, and returns its exit code.
func Main(args []string) int {
	if len(args) > 0 && args[0] == guardianArgument {
		guard()
	}
	t := &tool{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	return t.main(context.Background(), args)
}

// A tool is the command with what surrounds it.
type tool struct {
	in       *os.File
	out, err io.Writer
	env      func(string) (string, bool)

	url, urlFile string
	output       string
	verbose      bool
}

func (t *tool) main(ctx context.Context, args []string) int {
	root := t.root()
	root.SetArgs(args)
	root.SetIn(t.in)
	root.SetOut(t.out)
	root.SetErr(t.err)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code) && code.err == nil:
		return code.code
	}
	fmt.Fprintln(t.err, t.colour(t.err, red, "elector:"), strings.TrimPrefix(plain(oneLine(err)), "elector: "))
	return codeOf(err)
}

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "elector",
		Short: "Elect a leader on the store that you already run",
		Long: `Elector runs a command on one machine at a time, and shows who leads.

The address of the store comes from --url, from the file that --url-file names,
or from the variable ELECTOR_URL. A password in an argument shows in the list of
processes: prefer the other two. Each flag has a variable: --ttl is ELECTOR_TTL.

Commands print a table on a terminal, and elsewhere lines with tabs between columns
and no header. With -o json they print one object a line, whose fields their help
names. NO_COLOR switches colours off.

` + exitCodes,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(*cobra.Command, []string) error { return usage("no command; see elector help") },
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("unknown command %q; see elector help", args[0])
			}
			return nil
		},
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return t.variables(c.Flags()) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	f := root.PersistentFlags()
	f.StringVar(&t.url, "url", "", "the store, such as etcd://host:2379 (better in ELECTOR_URL)")
	f.StringVar(&t.urlFile, "url-file", "", "a file that contains the store's URL")
	f.StringVarP(&t.output, "output", "o", "", "table, tsv or json (default table on a terminal, tsv elsewhere)")
	f.BoolVarP(&t.verbose, "verbose", "v", false, "log what happens on stderr")
	root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(t.runCommand(), t.leaderCommand(), t.resignCommand(), t.historyCommand(), t.observeCommand(), t.listCommand(), t.partitionsCommand(), t.serveCommand(), t.doctorCommand(), t.versionCommand(), t.manCommand())
	return root
}

// variables sets each flag that was not given from its variable. ELECTOR_URL is
// read later: a --url-file goes before it. Inside elector run ELECTOR_ID names
// the candidate around this one.
func (t *tool) variables(flags *pflag.FlagSet) error {
	var errs []error
	_, inside := t.env("ELECTOR_TOKEN")
	flags.VisitAll(func(f *pflag.Flag) {
		name := "ELECTOR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if text, found := t.env(name); found && !f.Changed && f.Name != "url" && f.Name != "help" && !(inside && f.Name == "id") {
			if err := flags.Set(f.Name, text); err != nil {
				errs = append(errs, usage("the variable %s: %v", name, err))
			}
		}
	})
	return errors.Join(errs...)
}

// open connects to the store.
func (t *tool) open(ctx context.Context) (backends.Backend, error) {
	url, err := t.address()
	if err != nil {
		return nil, err
	}
	return backends.Open(ctx, url)
}

// address returns the store's URL.
func (t *tool) address() (string, error) {
	switch {
	case t.url != "" && t.urlFile != "":
		return "", usage("--url and --url-file are both given")
	case t.url != "":
		return t.url, nil
	case t.urlFile != "":
		content, err := os.ReadFile(t.urlFile)
		if err != nil {
			return "", usage("reading the store's URL: %v", err)
		}
		if url := strings.TrimSpace(string(content)); url != "" && !strings.ContainsAny(url, "\r\n") {
			return url, nil
		}
		return "", usage("the file %s does not contain one URL", t.urlFile)
	}
	if url, _ := t.env("ELECTOR_URL"); url != "" {
		return url, nil
	}
	return "", usage("no store: set ELECTOR_URL, as in ELECTOR_URL=etcd://host:2379, or --url-file or --url")
}

// candidate opens the store and returns a candidate or observer of the election on
// it. The caller calls done.
func (t *tool) candidate(ctx context.Context, name string, o *elector.Options) (e *elector.Elector, done func(), err error) {
	if err := backends.CheckName(name); err != nil {
		return nil, nil, usage("%v", err)
	}
	b, err := t.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if o == nil {
		o = &elector.Options{}
	}
	o.Logger = t.logger()
	if e, err = elector.New(b, name, o); err != nil {
		b.Close()
		return nil, nil, err
	}
	return e, func() { e.Close(); b.Close() }, nil
}

// logger logs only problems, unless asked for more.
func (t *tool) logger() *slog.Logger {
	level := slog.LevelWarn
	if t.verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: level}))
}
