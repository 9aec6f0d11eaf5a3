package chaos

import (
	"context"
	"fmt"
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

// build compiles a candidate of this name with edits.
func build(ctx context.Context, dir, name string, edits []overlay.Edit) (program string, err error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/elector-go/elector").Output()
	if err != nil {
		return "", fmt.Errorf("looking for the module's folder; work inside the repository: %w", err)
	}
	list, err := overlay.Write(strings.TrimSpace(string(root)), dir, name, edits)
	if err != nil {
		return "", err
	}
	program = filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", list, "-o", program, "github.com/elector-go/elector/internal/proof/chaos/candidate")
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
