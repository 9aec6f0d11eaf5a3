package postgres

import (
	"sync"

	"github.com/elector-go/elector/backends"
)

// doubts are the writes whose outcome is unknown. Their commits may be visible
// although no standby has them. They may still be applied as long as the version
// that they were to replace is there. The zero value has none.
type doubts struct {
	mutex sync.Mutex
	of    map[string]doubt // by the election's name
}

// A doubt is the version that writes were to replace, and their number.
type doubt struct {
	version backends.Version
	writes  int
}

// about returns the version that a doubtful write was to replace.
func (d *doubts) about(name string) (backends.Version, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	doubt, ok := d.of[name]
	return doubt.version, ok
}

// add begins a doubt. It ends the doubt about another version, which has been
// replaced since, so that its writes can no longer be applied.
func (d *doubts) add(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.of == nil {
		d.of = map[string]doubt{}
	}
	writes := 1
	if now := d.of[name]; now.version == version {
		writes += now.writes
	}
	d.of[name] = doubt{version, writes}
}

// drop ends the doubt about one write, which was certainly not applied.
func (d *doubts) drop(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := d.of[name]; now.version == version && now.writes > 1 {
		d.of[name] = doubt{version, now.writes - 1}
	} else if now.version == version {
		delete(d.of, name)
	}
}

// end ends the doubt about all writes that were to replace the version, because
// it has been replaced.
func (d *doubts) end(name string, version backends.Version) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.of[name].version == version {
		delete(d.of, name)
	}
}
