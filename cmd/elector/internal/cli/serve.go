package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/elector-go/elector/backends"
	"github.com/elector-go/elector/cmd/elector/internal/status"
)

// serveFlags are the flags of elector serve.
type serveFlags struct {
	listen string
	all    bool
	every  time.Duration
	reads  int
	vacant string
}

func (t *tool) serveCommand() *cobra.Command {
	f := &serveFlags{}
	c := &cobra.Command{
		Use:   "serve [NAME...]",
		Short: "Serve who leads, as a page and as JSON",
		Long: `Serve watches elections and shows them on a page: who leads, the fencing token, how
long ago the record changed, vacancies, lapsed leases, and stores that do not answer.
A group of package partition is one: NAME may be that of a group. The page shows how
many partitions each member has owned in the last ten minutes, and how many had no owner.

  /                       the page
  /leader?election=NAME   who leads, as JSON; reads the record once. Of a group, its
                          state as it was read last
  /elections              all elections, groups and stores, as JSON
  /history?election=NAME  the latest terms, as JSON, as they were read last
  /metrics                the same as metrics for Prometheus
  /healthz                200 while serve runs
  /readyz                 200 once each store was tried

The election of a cron job is vacant most of the time. With --vacant-ok its vacancy is
called idle, and is no problem.

For several stores, give a --url-file with one store a line: its URL, then the names
of its elections, and vacant-ok=PATTERN for the patterns of this store alone. A line
without names gets those of the command line. Empty lines, and lines that begin with #,
do not count. The file is read again for each sign-in, so that you can rotate passwords.

  etcd://etcd-1:2379 invoices nightly vacant-ok=nightly
  postgres://reader:secret@db/app billing

Serve has one connection to each store, and only reads: the right to read is enough.
Each election is read every
--every, and less often when there are many: at most --reads reads a second go to
one store. By default 50 elections cost a store 25 reads a second, and 2,000 cost 50,
so that each is read every 40 s. A group takes a read for each partition; where the
store reads many records in one request, 20 of them count as one read. If a store has
elections and groups, each kind gets half of the reads. Each GET /leader is one more
read, which requests at the same time share. With --all, serve also lists the elections
once a minute; on some stores that reads all records.

Serve has no authentication: it shows the names, ids and values of these elections
to anyone who can connect. It listens on this machine only, unless --listen names
another address.`,
		Example: `  elector serve invoices nightly
  elector serve --all --listen 127.0.0.1:9090
  elector serve --all --vacant-ok 'nightly-*,weekly-*'
  elector serve --url-file stores.txt
  curl 'http://127.0.0.1:8080/leader?election=invoices'`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return t.serve(ctx, args, f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "the address to listen on")
	flags.BoolVar(&f.all, "all", false, "watch all elections that the store lists")
	flags.DurationVar(&f.every, "every", 2*time.Second, "the time between two reads of an election")
	flags.StringVar(&f.vacant, "vacant-ok", "", "patterns, such as 'nightly-*,weekly', of elections that are normally vacant")
	flags.IntVar(&f.reads, "reads", 50, "the most reads from one store in a second")
	return c
}

func (t *tool) serve(ctx context.Context, names []string, f *serveFlags) error {
	switch {
	case f.every < 100*time.Millisecond:
		return usage("--every is %v, less than 100ms", f.every)
	case f.reads < 1 || f.reads > 1000:
		return usage("--reads is %d, not between 1 and 1000", f.reads)
	}
	stores, err := t.stores(names, f.all, f.vacant)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return usage("%v; choose another address with --listen", err)
	}
	address := listener.Addr().(*net.TCPAddr)
	logger := t.logger()
	o := status.Options{All: f.all, Every: f.every, Reads: f.reads, Logger: logger}
	if t.urlFile != "" {
		o.Again = func(i int) (string, error) {
			now, err := t.listed()
			if err == nil && i >= len(now) {
				err = fmt.Errorf("the file %s has %d stores now, and had %d; restart elector serve", t.urlFile, len(now), len(stores))
			}
			if err != nil {
				return "", err
			}
			return now[i].URL, nil
		}
	}
	fleet := status.New(stores, o)
	handler := fleet.Handler()
	if address.IP.IsLoopback() {
		handler = local(handler)
	} else {
		fmt.Fprintln(t.err, exposed(address))
	}
	fmt.Fprintf(t.err, "elector: serves http://%s/ until it is stopped\n", address)

	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it logs what clients do wrong
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(listener)
		cancel()
	}()
	err = fleet.Run(ctx)
	last, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	if server.Shutdown(last) != nil {
		server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serving HTTP: %w", ended))
	}
	return err
}

// exposed returns the warning for an address that others can reach.
func exposed(address net.Addr) string {
	return fmt.Sprintf("elector: warning: serve has no authentication: anyone who can connect to %s sees these elections", address)
}

// local refuses requests for names other than this machine's: a page of another
// site whose name leads to this address would otherwise read the answers.
func local(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if net.ParseIP(host) == nil && host != "localhost" {
			http.Error(w, "elector serve listens on the loopback address: use http://127.0.0.1 or http://localhost, or set another --listen", http.StatusMisdirectedRequest)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// stores returns the stores of the --url-file, one a line, or the one that --url or
// ELECTOR_URL names. The patterns of elections that are normally vacant count for each.
func (t *tool) stores(names []string, all bool, vacant string) ([]status.Store, error) {
	var stores []status.Store
	if t.urlFile == "" || t.url != "" {
		url, err := t.address()
		if err != nil {
			return nil, err
		}
		stores = append(stores, status.Store{URL: url})
	} else {
		var err error
		if stores, err = t.listed(); err != nil {
			return nil, err
		}
	}
	for i := range stores {
		s := &stores[i]
		if len(s.Elections) == 0 {
			s.Elections = names
		}
		if len(s.Elections) == 0 && !all {
			return nil, usage("store %d of %d has no elections to watch: name them, or give --all", i+1, len(stores))
		}
		s.VacantOK = append(s.VacantOK, split(vacant)...)
		for _, pattern := range s.VacantOK {
			if _, err := path.Match(pattern, ""); err != nil {
				return nil, usage("the pattern %q of vacant-ok: * stands for any text, ? for a letter, [a-z] for one of a range", pattern)
			}
		}
		for _, name := range s.Elections {
			if err := backends.CheckName(name); err != nil {
				return nil, usage("%v", err)
			}
		}
	}
	return stores, nil
}

// split returns the patterns of --vacant-ok.
func split(patterns string) []string {
	return strings.FieldsFunc(patterns, func(r rune) bool { return r == ',' })
}

// listed returns the stores of the --url-file.
func (t *tool) listed() (stores []status.Store, err error) {
	content, err := os.ReadFile(t.urlFile)
	if err != nil {
		return nil, usage("reading the stores' URLs: %v", err)
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[0][0] != '#' {
			s := status.Store{URL: fields[0]}
			for _, field := range fields[1:] {
				if patterns, found := strings.CutPrefix(field, "vacant-ok="); found {
					s.VacantOK = append(s.VacantOK, split(patterns)...)
				} else {
					s.Elections = append(s.Elections, field)
				}
			}
			stores = append(stores, s)
		}
	}
	if len(stores) == 0 {
		return nil, usage("the file %s contains no URL", t.urlFile)
	}
	return stores, nil
}
