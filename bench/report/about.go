package report

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// About is what a reader must know of a run besides its figures.
type About struct {
	CPU    string // the model
	Cores  int
	Memory int64 // bytes
	Kernel string
	Go     string
	Date   time.Time // of the last measurement

	TTL     time.Duration
	Short   bool // fewest rounds: the rows are all there, the figures say little
	Apart   bool // subjects were measured in runs of their own
	Systems []System

	Libraries []Library // in the order of the tables
}

// A System is a store that figures come from.
type System struct {
	Kind string // as in the figures
	Name string // with its version: "etcd 3.7.3"

	// Settings say how it is set; empty if that was not noted.
	Settings string `json:",omitempty"`

	// On says on which processor and when, if not on that of the page.
	On string `json:",omitempty"`
}

// A Library is one that figures are of.
type Library struct {
	Name, Module, Version string
	Belief                string // what its answer whether it leads goes by
	Settings              string
}

// Here returns what can be read from the machine: nothing that names it.
func Here() About {
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	memory, _ := os.ReadFile("/proc/meminfo")
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return About{
		CPU:    field(string(cpu), "model name"),
		Cores:  runtime.NumCPU(),
		Memory: kilobytes(field(string(memory), "MemTotal")),
		Kernel: release(runtime.GOOS, string(kernel)),
		Go:     strings.TrimPrefix(runtime.Version(), "go"),
		Date:   time.Now(),
	}
}

// Day is that of the last measurement.
func (a About) Day() string { return a.Date.UTC().Format("2 January 2006") }

// Save writes it to a file, for a page that is written again later.
func (a About) Save(path string) error {
	text, err := json.MarshalIndent(a, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o666)
}

// LoadAbout reads a file that Save has written.
func LoadAbout(path string) (a About, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// field returns the value of the first line that has the name before a colon.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kilobytes(s string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(s, " kB"), 10, 64)
	return n << 10
}

// release is the kernel's version without what a builder has put behind it.
func release(system, version string) string {
	version, _, _ = strings.Cut(strings.TrimSpace(version), "-")
	if system == "linux" {
		system = "Linux"
	}
	return strings.TrimSpace(system + " " + version)
}
