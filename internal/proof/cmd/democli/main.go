// Command democli shows that under elector run no descendants of two terms are
// alive at once, and none is alive past its lease: it breaks stores, wrappers,
// guardians and commands at random on a file:// store, etcd and PostgreSQL, and
// judges by a journal that each descendant stamps with the time since boot.
//
// It also shows what elector run cannot cover, runs two hosts' cron jobs, and
// compares the handover after a killed command with etcdctl lock. It exits 1 if
// something was not as promised; with -mutant, if a broken elector is not found.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"

	"github.com/elector-go/elector/internal/proof/stores"
)

func main() {
	if len(os.Args) == 4 && os.Args[1] == memberArgument {
		if err := member(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "member:", err)
			os.Exit(1)
		}
		return
	}
	rounds := flag.Int("rounds", 50, "how many faults")
	seed := flag.Uint64("seed", 0, "of the faults; 0 for a random one")
	mutant := flag.String("mutant", "", "break elector run in one known way, which must be found")
	which := flag.String("fault", "", "only the faults whose names contain this")
	only := flag.String("only", "", "rounds, exceptions, cron or handover alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	d := &demo{rounds: *rounds, random: rand.New(rand.NewPCG(*seed, 0)), mutant: *mutant, only: *only, which: *which}
	fmt.Printf("seed %d\n", *seed)
	if err := d.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "democli:", err)
		os.Exit(1)
	}
}

// A demo is all of it.
type demo struct {
	rounds       int
	random       *rand.Rand
	mutant, only string
	which        string
	refused      string // why the kernel gives no PID namespace; empty if it does

	dir, program, self string
	places             []place
	etcd               *stores.Store

	mutex  sync.Mutex // of what follows, and of what is printed
	broken []string
}

func (d *demo) run(ctx context.Context) (err error) {
	if d.dir, err = os.MkdirTemp("", "elector-democli-"); err != nil {
		return err
	}
	defer os.RemoveAll(d.dir)
	if d.self, err = os.Executable(); err != nil {
		return err
	}
	if d.program, err = build(ctx, d.dir, d.mutant); err != nil {
		return err
	}
	for _, kind := range []string{stores.Etcd, stores.Postgres} {
		s, err := stores.Start(ctx, kind)
		if err != nil {
			return err
		}
		defer s.Stop()
		fmt.Println(s)
		d.places = append(d.places, place{name: kind, url: s.URL, freeze: s.Pause, thaw: s.Continue})
		if kind == stores.Etcd {
			d.etcd = s
		}
	}
	d.refused = d.isolates(ctx)
	for i := range 4 { // nothing is shared, so there may be several
		p, err := folder(filepath.Join(d.dir, fmt.Sprintf("store%d", i)), len(d.places))
		if err != nil {
			return err
		}
		if p.isolated = i > 1; p.isolated && d.refused != "" {
			fmt.Println("Not shown, because this kernel refuses --isolate:", d.refused)
			break
		}
		d.places = append(d.places, p)
	}
	wanted := func(step string) bool {
		return d.only == step || d.only == "" && (d.mutant == "" || step == "rounds")
	}
	cron := make(chan error, 1) // beside the others: it mostly waits
	if seed := d.random.Uint64(); wanted("cron") {
		go func() { cron <- d.cron(ctx, seed) }()
	} else {
		cron <- nil
	}
	if wanted("rounds") {
		err = d.faults(ctx)
	}
	if err == nil && wanted("exceptions") {
		err = d.exceptions(ctx)
	}
	if err := errors.Join(err, <-cron); err != nil {
		return err
	}
	if wanted("handover") {
		if err := d.handover(ctx); err != nil {
			return err
		}
	}
	fmt.Println()
	switch found := len(d.broken) > 0; {
	case d.mutant != "" && !found:
		return fmt.Errorf("the mutant %s was not found", d.mutant)
	case d.mutant != "":
		fmt.Printf("The mutant %s was found, %d times; first: %s\n", d.mutant, len(d.broken), d.broken[0])
	case found:
		return fmt.Errorf("not as promised:\n%s", strings.Join(d.broken, "\n"))
	default:
		fmt.Println("No descendants of two terms were alive at once, and none past its lease.")
	}
	return nil
}

// faults plays the rounds, on all places side by side.
func (d *demo) faults(ctx context.Context) error {
	faults := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool {
		return !strings.Contains(f.name, d.which) || f.isolated && d.refused != ""
	})
	if len(faults) == 0 {
		return fmt.Errorf("no fault has %q in its name, or the kernel gives no PID namespace: %s", d.which, d.refused)
	}
	order := make([]fault, 0, d.rounds)
	for i := range d.rounds {
		order = append(order, faults[i%len(faults)])
	}
	d.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	next := func(isolated bool) (f fault, more bool) {
		d.mutex.Lock()
		defer d.mutex.Unlock()
		if d.mutant != "" && len(d.broken) > 0 {
			return f, false
		}
		// Lanes with --isolate play what only they cover, and then anything.
		i := slices.IndexFunc(order, func(f fault) bool { return f.isolated == isolated })
		if i < 0 && isolated && len(order) > 0 {
			i = 0
		}
		if i < 0 {
			return f, false
		}
		f = order[i]
		order = slices.Delete(order, i, i+1)
		return f, true
	}
	played := map[string]int{}
	terms := 0
	var late []string
	var errs []error
	var group sync.WaitGroup
	for i, p := range d.places {
		l, err := newLane(p, d.program, d.self, d.dir, i)
		if err != nil {
			return err
		}
		if p.isolated {
			l.flags = append(l.flags, "--isolate")
		}
		group.Go(func() {
			defer l.end()
			for {
				f, more := next(p.isolated)
				if !more || ctx.Err() != nil {
					break
				}
				before := len(l.broken)
				err := l.play(ctx, f)
				d.mutex.Lock()
				played[f.name+"\t"+p.kind()]++
				d.broken = append(d.broken, l.broken[before:]...)
				if err != nil {
					errs = append(errs, fmt.Errorf("%s: %w\n%s", p.name, err, l.tail()))
				}
				d.mutex.Unlock()
				if err != nil {
					break
				}
			}
			all, _ := l.journal.read()
			n, longest := overlaps(all)
			d.mutex.Lock()
			late = append(late, l.late...)
			defer d.mutex.Unlock()
			terms += len(all)
			if n > 0 {
				d.broken = append(d.broken, fmt.Sprintf("%s: %d pairs of terms overlap, by up to %v", p.name, n, longest))
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil && d.mutant == "" {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\nfault\tfile\tetcd\tpostgres")
	for _, f := range faults {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\n", f.name, played[f.name+"\tfile"], played[f.name+"\tetcd"], played[f.name+"\tpostgres"])
	}
	out.Flush()
	fmt.Printf("%d terms; %d violations\n", terms, len(d.broken))
	for _, l := range late {
		fmt.Println("late, as the machine was:", l)
	}
	return context.Cause(ctx)
}

// isolates returns why the kernel refuses elector run --isolate, empty if it does not.
func (d *demo) isolates(ctx context.Context) string {
	c := exec.CommandContext(ctx, d.program, "run", "isolates", "--isolate", "--", "true")
	c.Env = append(os.Environ(), "ELECTOR_URL=file://"+d.dir)
	if out, err := c.CombinedOutput(); err != nil {
		return strings.TrimSpace(string(out))
	}
	return ""
}

func (p place) kind() string { return strings.TrimRight(p.name, "0123456789") }

// folder is a file:// store, which a process freezes that holds the lock.
func folder(dir string, lane int) (place, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return place{}, err
	}
	var lock *os.File
	freeze := func() (err error) {
		if lock, err = os.OpenFile(filepath.Join(dir, fmt.Sprintf("lane%d.lock", lane)), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
		return syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)
	}
	return place{name: fmt.Sprintf("file%d", lane), url: "file://" + dir, freeze: freeze, thaw: func() error { return lock.Close() }}, nil
}

// build compiles the command in its own workspace.
func build(ctx context.Context, dir, mutant string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elector-go/elector").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module's folder; work inside the repository: %w", err)
	}
	root := strings.TrimSpace(string(out))
	program := filepath.Join(dir, "elector")
	args := []string{"build", "-o", program}
	if mutant != "" {
		list, err := overlayOf(root, dir, mutant)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", list)
	}
	c := exec.CommandContext(ctx, "go", append(args, ".")...)
	c.Dir = filepath.Join(root, "cmd", "elector")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cmd/elector: %w\n%s", err, out)
	}
	return program, nil
}

// tail is the end of what the wrappers have said.
func (l *lane) tail() string {
	content, _ := os.ReadFile(l.log.Name())
	return string(content[max(0, len(content)-3000):])
}
