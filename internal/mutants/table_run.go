package main

// guardian is the package that keeps a command within its lease.
const guardian = "./internal/guardian"

func init() {
	for _, m := range runMutants {
		m.pkg, m.module = "./internal/cli", "cmd/elector"
		for i := range m.edits {
			m.edits[i].File = "cmd/elector/internal/cli/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
	for _, m := range guardianMutants {
		m.pkg, m.module = guardian, "cmd/elector"
		if m.parent == "" {
			m.parent = "TestGuardian"
		}
		for i := range m.edits {
			m.edits[i].File = "cmd/elector/internal/guardian/" + m.edits[i].File
		}
		mutants = append(mutants, m)
	}
}

// runMutants are the known ways of elector run to end with the wrong thing.
var runMutants = []mutant{
	{name: "a command ended by a near loss ends run", breaks: "--once", catch: "campaigns_again", parent: "TestLoss", edits: []edit{{
		"run_unix.go", `	case g.Overdue():
		end.lost = errors.New("the lease was not renewed in time")`, `	case g.Overdue():`}}},
	{name: "a near loss that --once does not see", breaks: "--once", catch: "ends_with_70", parent: "TestLoss", edits: []edit{{
		"run_unix.go", `case end.lost != nil && r.once && !r.stopped:`, `case false:`}}},
}

// guardianMutants are the known ways to leave a command running.
var guardianMutants = []mutant{
	{name: "no guardian: only the wrapper kills", breaks: "H", catch: "wrapper_stopped", edits: []edit{{
		"guard_unix.go", `func (g *guard) killBy() Moment { return g.command.Deadline.Add(-g.command.Kill) }`, `func (g *guard) killBy() Moment { return never }`}, {
		"guard_unix.go", `return g.killBy().Add(-g.command.Grace)`, `return never`}}},
	{name: "a command outlives a wrapper that was killed", breaks: "H", catch: "wrapper_killed", edits: []edit{{
		"guard_unix.go", `		g.stop(g.command.Grace)
	case o.Deadline`, `	case o.Deadline`}}},
	{name: "PDEATHSIG alone, under the guardian", breaks: "H", catch: "wrapper_killed", edits: []edit{{
		"processes_linux.go", "\tchase()\n", ""}, {
		"processes_linux.go", `if leads[p.group] && !killed[p.group]`, `if false`}, {
		"processes_linux.go", `		if !spared(p.pid) {
			p.kill()`, `		if !spared(p.pid) && p.pid == command {
			p.kill()`}}},
	{name: "PDEATHSIG alone, once the guardian is killed", breaks: "H", catch: "guardian_killed", edits: []edit{{
		"follow_unix.go", `		found := h.again(g.pid)`, `		found := []process{}`}}},
	{name: "an isolated command is not", breaks: "H", catch: "wrapper_stopped,_guardian_killed", parent: "TestIsolated", edits: []edit{{
		"start_unix.go", `	if c.Isolate {`, `	if false {`}, {
		"guard_unix.go", `	if g.command.Isolate {`, `	if false {`}}},
	{name: "no stand-in for a guardian that is stopped", breaks: "H", catch: "guardian_stopped", edits: []edit{{
		"follow_unix.go", `				g.standIn()
`, ``}}},
	{name: "a stopped guardian keeps the wrapper from stopping", breaks: "Stop", catch: "guardian_stopped,_wrapper_told_to_stop", edits: []edit{{
		"follow_unix.go", `	if g.killAt != never {`, `	if false {`}}},
	{name: "resigned before the reaping", breaks: "H", catch: "what_a_command_leaves_dies_before_it_is_done", edits: []edit{{
		"follow_unix.go", `empty = empty || r.Empty || r.Failed != ""`, `empty = empty || r.Empty || r.Failed != ""
			if r.Exit != nil {
				g.note(r)
				return
			}`}}},
	{name: "grace beyond H", breaks: "H", catch: "wrapper_told_to_stop,_then_stopped", edits: []edit{{
		"guard_unix.go", `		return min(g.killBy(), g.killAt)`, `		return g.killAt`}, {
		"guard_unix.go", `now >= min(g.killBy(), g.killAt) {`, `now >= g.killAt {`}}},
	{name: "a command started after its lease", breaks: "H", catch: "nothing_is_started_too_late", edits: []edit{{
		"guard_unix.go", `if Now() >= g.termAt() {`, `if false {`}}},
	{name: "a process whose first thread has ended taken for dead", breaks: "H", catch: "a_process_whose_first_thread_has_ended", edits: []edit{{
		"processes_linux.go", "\tchase()\n", ""}, {
		"processes_linux.go", `zombie && numbers[2] <= 1`, `zombie`}}},
	{name: "survivors of SIGKILL waited for without end", breaks: "Survivors", catch: "what_SIGKILL_does_not_end_is_reported", edits: []edit{{
		"follow_unix.go", `		if Now() >= by {`, `		if false && Now() >= by {`}}},
}
