package scale

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
)

// profiles is the beginning of the names of a run's profiles, empty if there are
// to be none.
func (r run) profiles() string {
	if r.o.Profiles == "" {
		return ""
	}
	library := strings.ReplaceAll(r.library, "/", "-")
	return filepath.Join(r.o.Profiles, fmt.Sprintf("%s-%s-%d", r.kind, library, r.elections))
}

// A profiler profiles this process while it holds elections, once. An empty
// prefix is for one that does nothing.
type profiler struct {
	prefix string // of the files' names
	cpu    bytes.Buffer
}

func (p *profiler) start() error {
	if p.prefix == "" {
		return nil
	}
	return pprof.StartCPUProfile(&p.cpu)
}

// stop comes before the memory is measured: the profile of the processor needs
// some.
func (p *profiler) stop() {
	if p.prefix != "" {
		pprof.StopCPUProfile()
	}
}

// write comes after it: the profile of the heap is of the last collection.
func (p *profiler) write() error {
	if p.prefix == "" {
		return nil
	}
	for _, name := range []string{"cpu", "heap", "goroutine"} {
		b := &p.cpu
		if name != "cpu" {
			b = &bytes.Buffer{}
			if err := pprof.Lookup(name).WriteTo(b, 0); err != nil {
				return err
			}
		}
		if err := os.WriteFile(p.prefix+"."+name+".pprof", b.Bytes(), 0o666); err != nil {
			return err
		}
	}
	*p = profiler{} // a second report is not about the holding
	return nil
}
