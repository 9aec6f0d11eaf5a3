package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/elector-go/elector/internal/overlay"
)

// Build compiles the candidate into dir, an absolute path, and returns the
// program. It must be called inside the module. Mutant is the name of one of
// Mutants, or empty.
func Build(ctx context.Context, dir, mutant string) (program string, err error) {
	edits := slices.Concat(stopInLock, shortAudit)
	if mutant != "" {
		m, known := Mutants[mutant]
		if !known {
			return "", fmt.Errorf("there is no mutant %q", mutant)
		}
		edits = append(edits, m.edits...)
	}
	return build(ctx, dir, "candidate", edits)
}

// BuildOlder compiles the candidate of a commit of this repository, with that commit's
// library, into dir.
func BuildOlder(ctx context.Context, dir, commit string) (program string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	older := filepath.Join(dir, "older-"+commit)
	archive := filepath.Join(dir, "older.tar")
	for _, command := range [][]string{
		{"git", "-C", root, "archive", "-o", archive, commit},
		{"mkdir", older},
		{"tar", "-xf", archive, "-C", older},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("getting commit %s, which needs a clone with its history: %w\n%s", commit, err, strings.TrimSpace(string(out)))
		}
	}
	for _, folder := range []string{"internal/proof", "conformance/stores"} { // of the candidate's module
		if folder = filepath.Join(older, folder); exists(folder) {
			return compile(ctx, older, folder, dir, "candidate-"+commit, nil)
		}
	}
	return "", fmt.Errorf("commit %s has no candidate", commit)
}

func moduleRoot(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elector-go/elector").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module's folder; work inside the repository: %w", err)
	}
	return strings.TrimSpace(string(root)), nil
}

// Commit names what Build compiles: the last commit, and whether the tree has changes;
// "unknown" outside a clone.
func Commit(ctx context.Context) string {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "unknown"
	}
	said, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(said))
}

// build compiles a candidate of this name with edits.
func build(ctx context.Context, dir, name string, edits []overlay.Edit) (program string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return "", err
	}
	return compile(ctx, root, filepath.Join(root, "internal/proof"), dir, name, edits)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// compile compiles the candidate of a tree, from the folder of its module.
func compile(ctx context.Context, root, module, dir, name string, edits []overlay.Edit) (program string, err error) {
	list, err := overlay.Write(root, dir, name, edits)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", program, "./chaos/candidate")
	cmd.Dir = module
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the candidate: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	return program, nil
}

// auditTTLs is the audit bound of the candidates' groups, in TTLs. It is much shorter than
// others have it: so a record that was deleted is seen within a round. It is four times
// the longest time between two views of a record.
const auditTTLs = 4

var shortAudit = []overlay.Edit{
	{File: "internal/rule/partition.go", Old: "func Audit(ttl time.Duration) time.Duration { return 60 * ttl }", New: fmt.Sprintf("func Audit(ttl time.Duration) time.Duration { return %d * ttl }", auditTTLs)},
}

// inLock names the variable whose file, if it is there, makes a candidate stop
// itself inside the file backend's lock, before it renames.
const inLock = "ELECTOR_STOP_IN_LOCK"

// stopInLock puts that stop into the file backend, which has no use for it
// otherwise. As in the candidate, the signal goes to this very thread.
var stopInLock = []overlay.Edit{
	{File: "backends/file/file.go", Old: `	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replacing the record: %w", err)`, New: `	stopInLock()
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("replacing the record: %w", err)`},
	{File: "backends/file/file.go", Old: `// Describe implements [backends.Backend].`, New: `func stopInLock() {
	if trigger := os.Getenv("` + inLock + `"); trigger != "" && os.Remove(trigger) == nil {
		syscall.RawSyscall(syscall.SYS_TGKILL, uintptr(os.Getpid()), uintptr(syscall.Gettid()), uintptr(syscall.SIGSTOP))
	}
}

// Describe implements [backends.Backend].`},
	{File: "backends/file/file.go", Old: `	"runtime"
`, New: `	"runtime"
	"syscall"
`},
}
