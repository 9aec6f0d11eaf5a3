package adversary

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/overlay"
	"github.com/elector-go/elector/internal/proof/adversary/wire"
)

// A Mutant is a broken guard, which must be found.
type Mutant struct {
	Breaks string
	Kind   string   // of the data
	Points []string // any of which shows it
	edits  []overlay.Edit
}

const sqlFile = "fence/fencesql/transact.go"

// Mutants are by their names.
var Mutants = map[string]Mutant{
	"etcd-without-comparisons": {
		Breaks: "the guard of etcd is left out",
		Kind:   wire.Etcd, Points: []string{wire.Check, wire.Guard},
		edits: []overlay.Edit{{File: "backends/etcd/guard.go", Old: "kv.Txn(ctx).If(c.comparisons()...).Then", New: "kv.Txn(ctx).Then"}},
	},
	"postgres-without-guard": {
		Breaks: "the guard of PostgreSQL is left out",
		Kind:   wire.Postgres, Points: []string{wire.Check, wire.Drain},
		edits: []overlay.Edit{{File: "backends/postgres/guard.go", Old: `tx.Exec(ctx, statement+"; commit")`, New: `tx.Exec(ctx, statement[:0]+"commit")`}},
	},
	"fencesql-admits-all": {
		Breaks: "the table of tokens admits each token",
		Kind:   wire.SQL, Points: []string{wire.Check},
		edits: []overlay.Edit{{File: "fence/fencesql/fencesql.go", Old: `where resource = ? and token <= ?",
		add:`, New: `where resource = ? and token <= token + ?",
		add:`}},
	},
	"fencesql-admits-before": {
		Breaks: "the token is admitted in a transaction of its own, before the one that writes",
		Kind:   wire.SQL, Points: []string{wire.Entered, wire.Guarded},
		edits: []overlay.Edit{{File: sqlFile, Old: "	if err := t.enter(ctx, tx, a.Election, elector.Token(a.Record.Token), a.Remaining); err != nil {", New: `	if highest, err := t.Keeper(db).Raise(ctx, a.Election, elector.Token(a.Record.Token)); err != nil || highest > elector.Token(a.Record.Token) {
		if err == nil {
			err = elector.ErrStale
		}`}},
	},
}

// stops is a package of this build alone: the library calls At at each point, and the
// leader's program sets it.
const stops = "internal/stops/stops.go"

func importing(file, after string) overlay.Edit {
	return overlay.Edit{File: file, Old: after, New: after + "\n	\"github.com/elector-go/elector/internal/stops\""}
}

// before puts a point before a text of a file.
func before(file, point, text string) overlay.Edit {
	return overlay.Edit{File: file, Old: text, New: fmt.Sprintf("	stops.At(%q)\n%s", point, text)}
}

const inModule = `	"github.com/elector-go/elector/backends"`

var points = []overlay.Edit{
	{File: stops, New: "package stops\n\nvar At = func(point string) {}\n"},
	{File: "internal/proof/adversary/leader/stops.go", New: "package main\n\nimport \"github.com/elector-go/elector/internal/stops\"\n\nfunc init() { stops.At = at }\n"},

	importing("backends/etcd/guard.go", inModule),
	before("backends/etcd/guard.go", wire.Guard, "	answer, err := kv.Txn(ctx)."),

	importing("backends/postgres/guard.go", inModule),
	before("backends/postgres/guard.go", wire.Guard, "	_, err = tx.Exec(ctx, statement"),
	before("backends/postgres/guard.go", wire.Guarded, "	return tx.Commit()\n"),

	importing(sqlFile, inModule),
	before(sqlFile, wire.Entered, "	if err := work(tx); err != nil {"),
	before(sqlFile, wire.Guarded, "		err = tx.Commit()\n"),

	importing("renew.go", inModule),
	before("renew.go", wire.Renew, "	pending := e.beginSwap(ctx, how, write)"),
	before("renew.go", wire.Renewed, "	if f == nil {\n		return l.adopt(r), false"),

	importing("release.go", `	"github.com/elector-go/elector/internal/annex"`),
	before("release.go", wire.Release, "	err := l.own.vacate()\n"),
	before("release.go", wire.Released, "	took := e.clock.Now().Mono - start\n"),
}

// Build compiles the leader into dir, an absolute path, and returns the program. It must be
// called inside the module. Mutant is the name of one of Mutants, or empty.
func Build(ctx context.Context, dir, mutant string) (program string, err error) {
	edits := slices.Concat(Mutants[mutant].edits, points)
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elector-go/elector").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module's folder; work inside the repository: %w", err)
	}
	at := strings.TrimSpace(string(root))
	list, err := overlay.Write(at, dir, "leader"+mutant, edits)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, "leader"+mutant)
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", program, "./adversary/leader")
	cmd.Dir = filepath.Join(at, "internal/proof")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the leader: %w\n%s", err, said)
	}
	return program, nil
}
