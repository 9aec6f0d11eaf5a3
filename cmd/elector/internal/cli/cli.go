// Package cli is the command elector.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/elector-go/elector"
	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/internal/storeurl"
)

// Main runs the command with the arguments, and returns its exit code.
func Main(args []string) int {
	if len(args) > 0 && args[0] == guardianArgument {
		guard()
	}
	t := &tool{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	code := t.main(context.Background(), args)
	endBy(t.endBy)
	return code
}

// A tool is the command with what surrounds it.
type tool struct {
	in       *os.File
	out, err io.Writer
	env      func(string) (string, bool)

	url, urlFile string
	output       string
	verbose      bool

	endBy syscall.Signal // that ends this process, as it ended the command; or 0
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
	fmt.Fprintln(t.err, t.colour(t.err, red, "elector:"), strings.TrimPrefix(plain(forOperators.Replace(oneLine(err))), "elector: "))
	return codeOf(err)
}

func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "elector",
		Short: "Elect a leader on the store that you already run",
		Long: `Elector runs a command on one machine at a time, and shows who leads.

The address of the store comes from --url, from the file that --url-file names,
or from the variable ELECTOR_URL. A password in an argument shows in the list of
processes: prefer the other two. The file is read again for each sign-in at etcd or
MySQL, so that its password can be rotated. Each flag has a variable: --ttl is
ELECTOR_TTL.

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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", withUnit(err)) })
	f := root.PersistentFlags()
	f.StringVar(&t.url, "url", "", "the store, such as etcd://host:2379 (better in ELECTOR_URL)")
	f.StringVar(&t.urlFile, "url-file", "", "a file that contains the store's URL")
	f.StringVarP(&t.output, "output", "o", "", "table, tsv or json (default table on a terminal, tsv elsewhere)")
	f.BoolVarP(&t.verbose, "verbose", "v", false, "log what happens on stderr")
	root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	root.AddCommand(t.runCommand(), t.leaderCommand(), t.resignCommand(), t.pauseCommand(), t.resumeCommand(), t.historyCommand(), t.observeCommand(), t.listCommand(), t.partitionsCommand(), t.serveCommand(), t.doctorCommand(), t.versionCommand(), t.manCommand())
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
				errs = append(errs, usage("the variable %s: %s", name, withUnit(err)))
			}
		}
	})
	return errors.Join(errs...)
}

// open connects to the store for a command that changes an election, which exists. It looks
// first: a table or a directory that is missing is a typo in the URL, and must not be made.
func (t *tool) open(ctx context.Context) (backends.Backend, error) {
	looked, err := t.connect(ctx, backends.OpenReadOnly)
	switch {
	case err == nil:
		looked.Close()
	case errors.Is(err, backends.ErrMisconfigured):
		return nil, err
	}
	return t.connect(ctx, backends.Open) // which needs other rights
}

// connect connects to the store. The URL in a --url-file is read again for each sign-in, so
// that its password can be rotated.
func (t *tool) connect(ctx context.Context, open func(context.Context, string) (backends.Backend, error)) (backends.Backend, error) {
	url, err := t.address()
	if err != nil {
		return nil, err
	}
	if t.urlFile != "" {
		ctx = storeurl.WithSource(ctx, t.address)
	}
	return open(ctx, url)
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
	if _, inside := t.env("ELECTOR_TOKEN"); inside {
		return "", usage("no store: elector run passes no ELECTOR_URL with a password on, unless it has --keep-url; or set --url-file")
	}
	return "", usage("no store: set ELECTOR_URL, as in ELECTOR_URL=etcd://host:2379, or --url-file or --url")
}

var lacksUnit = regexp.MustCompile(`time: missing unit in duration "([^"]*)"`)

// withUnit returns the text of an error about a flag, with what to write.
func withUnit(err error) string {
	return lacksUnit.ReplaceAllString(err.Error(), "a time needs a unit: write ${1}s for seconds, or ${1}m for minutes")
}

// openToLook connects to the store for a command that only reads.
func (t *tool) openToLook(ctx context.Context) (backends.Backend, error) {
	return t.connect(ctx, backends.OpenReadOnly)
}

// A candidate is one, or an observer, of an election on a store.
type candidate struct {
	*elector.Elector
	store string
}

// never reports whether the election never had a leader.
func never(l elector.Leader) bool { return l.Vacant() && l.Token == 0 }

// unused is the error for a name that never had a leader.
func (c candidate) unused() error {
	return fmt.Errorf("no election has ever used the name %q on %s; elector list shows those that have", c.Name(), c.store)
}

// observer opens the store for reading and returns an observer. The caller calls done.
func (t *tool) observer(ctx context.Context, name string) (c candidate, done func(), err error) {
	return t.candidateOn(ctx, name, nil, t.openToLook)
}

// candidate opens the store, which exists, and returns a candidate. The caller calls done.
func (t *tool) candidate(ctx context.Context, name string, o *elector.Options) (c candidate, done func(), err error) {
	return t.candidateOn(ctx, name, o, t.open)
}

// firstCandidate is candidate for the process that may be the first one of its store,
// and so makes the table or the directory.
func (t *tool) firstCandidate(ctx context.Context, name string, o *elector.Options) (c candidate, done func(), err error) {
	return t.candidateOn(ctx, name, o, func(ctx context.Context) (backends.Backend, error) {
		return t.connect(ctx, backends.Open)
	})
}

func (t *tool) candidateOn(ctx context.Context, name string, o *elector.Options, open func(context.Context) (backends.Backend, error)) (c candidate, done func(), err error) {
	if err := backends.CheckName(name); err != nil {
		return c, nil, usage("%v", err)
	}
	b, err := open(ctx)
	if err != nil {
		return c, nil, err
	}
	if o == nil {
		o = &elector.Options{}
	}
	o.Logger = t.logger()
	e, err := elector.New(b, name, o)
	if err != nil {
		b.Close()
		return c, nil, err
	}
	return candidate{e, b.Describe().Store}, func() { e.Close(); b.Close() }, nil
}

// logger logs only problems, unless asked for more.
func (t *tool) logger() *slog.Logger {
	level := slog.LevelWarn
	if t.verbose {
		level = slog.LevelInfo
	}
	return slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: level}))
}

// say prints a line for people.
func (t *tool) say(format string, args ...any) {
	fmt.Fprintf(t.err, "elector: "+format+"\n", args...)
}
